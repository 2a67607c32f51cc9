"""A padded Hugging Face encoder: κ of all weights, and of low-rank ones (LoRA) alone."""

import torch
from transformers import BertConfig, BertForSequenceClassification

import ntkcond


class LoRA(torch.nn.Module):  # peft's have such names too: "*lora_*" finds them
    def __init__(self, linear: torch.nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.linear = linear
        self.lora_A = torch.nn.Parameter(torch.randn(rank, linear.in_features))
        self.lora_B = torch.nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + x @ self.lora_A.T @ self.lora_B.T


torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                    num_attention_heads=2)  # fmt: skip
bert = BertForSequenceClassification(config).eval()  # random weights; or .from_pretrained(…)
real = torch.arange(12) < torch.randint(4, 13, (20, 1))  # 4 to 12 tokens, then padding
x = {"input_ids": torch.randint(1, 100, (20, 12)) * real, "attention_mask": real.long()}
first = {"output": lambda out: out.logits[:, 0]}
print("all weights:", ntkcond.condition_number(bert, x, **first))
for layer in bert.bert.encoder.layer:
    layer.attention.self.value = LoRA(layer.attention.self.value)
print("LoRA:", ntkcond.condition_number(bert, x, parameters="*lora_*", **first))
