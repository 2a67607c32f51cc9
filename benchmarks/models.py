"""Networks that people have: the library's NTK and κ beside autograd's, on random weights.

    python -m venv models; models/bin/pip install -e . torchvision timm transformers
    models/bin/python benchmarks/models.py [NAME …]

Tested: |ΔK_ij| ≤ 10⁻¹² √(K_ii K_jj), and κ of autograd's K inside the interval that is claimed.
Autograd: a fresh float64 copy for each sample, in a batch of two equal ones, since torch's own
gradient of batch normalisation can be wrong for one. Every model of the list stays in the table,
refused ones too. Writes docs/measured/models.csv (only of all models); one process for each.
"""

import argparse
import copy
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from ntkcond.datasets import torchvision_data  # noqa: F401, so that torchvision can be imported

TABLE = Path(__file__).parents[1] / "docs/measured/models.csv"
SAMPLES, TOKENS, WORDS = 5, 9, 40
PAD = 0
KNOWN = 1e-6  # κ n u below which a verdict should be `resolved`
CLOSE = 1e-12  # of √(K_ii K_jj)


class First(nn.Module):
    """The first output of a network for images."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        f = self.network(x)
        return f.flatten(1)[:, :1]


class Reads(nn.Module):
    """The mean of a language model's last hidden states, without padded words, times a vector."""

    def __init__(self, network: nn.Module, width: int, masked: bool, **more: object) -> None:
        super().__init__()
        self.network, self.masked, self.more = network, masked, more
        self.head = nn.Linear(width, 1)

    def forward(self, words: Tensor) -> Tensor:
        real = words != PAD
        passed = dict(self.more)
        if self.masked:
            passed["attention_mask"] = real.long()
        if "decoder" in passed:
            passed.pop("decoder")
            passed["decoder_input_ids"] = words
        h = self.network(input_ids=words, **passed).last_hidden_state
        if not self.masked:
            return self.head(h.mean(1))
        return self.head((h * real[..., None]).sum(1) / real.sum(1, keepdim=True))


class Sees(nn.Module):
    """The mean of a transformer's last hidden states, of images or sounds, times a vector."""

    def __init__(self, network: nn.Module, width: int, axis: int = 1) -> None:
        super().__init__()
        self.network, self.axis = network, axis
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.network(x).last_hidden_state
        return self.head(h.flatten(2).mean(2) if self.axis == -1 else h.mean(1))


def images(size: int, channels: int = 3) -> Callable[[], Tensor]:
    return lambda: torch.randn(SAMPLES, channels, size, size)


def sentences(padded: bool) -> Tensor:
    words = torch.randint(3, WORDS, (SAMPLES, TOKENS))
    for row in range(SAMPLES if padded else 0):
        words[row, TOKENS - 2 * (row % 4) :] = PAD
    return words


def _torchvision(name: str, size: int = 64, **more: object) -> tuple:
    def build() -> nn.Module:
        from torchvision import models

        return First(getattr(models, name)(**{"weights": None, "num_classes": 3, **more}))

    return build, images(size)


def _timm(name: str, size: int = 64, **more: object) -> tuple:
    def build() -> nn.Module:
        import timm

        return First(timm.create_model(name, pretrained=False, num_classes=3, **more))

    return build, images(size)


def _text(name: str, padded: bool = True, width: int = 16, **config: object) -> tuple:
    """A model of Hugging Face: NAMEModel of NAMEConfig, tiny and random."""

    def build() -> nn.Module:
        import transformers

        made = getattr(transformers, f"{name}Config")(
            **{"vocab_size": WORDS, "pad_token_id": PAD, "use_cache": False, **config}
        )
        encoder = {"decoder": True} if made.is_encoder_decoder else {}
        network = getattr(transformers, f"{name}Model")(made)
        return Reads(network, width, padded, **encoder)

    return build, lambda: sentences(padded)


def _seen(name: str, x: Callable[[], Tensor], width: int, axis: int = 1, **config: object) -> tuple:
    def build() -> nn.Module:
        import transformers

        made = getattr(transformers, f"{name}Config")(**config)
        return Sees(getattr(transformers, f"{name}Model")(made), width, axis)

    return build, x


BERT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32,
}  # fmt: skip
LLAMA = {**BERT, "num_key_value_heads": 1}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
VIT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "image_size": 16, "patch_size": 4,
}  # fmt: skip
BART = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
    "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
SOUND = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "conv_dim": (8, 8), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip

MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    **{
        f"torchvision {name}": _torchvision(name)
        for name in (
            "resnet18", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1",
            "shufflenet_v2_x0_5", "efficientnet_b0", "mnasnet0_5", "regnet_y_400mf",
        )
    },
    "torchvision googlenet": _torchvision("googlenet", aux_logits=False, init_weights=False),
    "torchvision vit": (lambda: First(_vision_transformer()), images(16)),
    "torchvision swin": (lambda: First(_swin()), images(32)),
    **{
        f"timm {name}": _timm(name)
        for name in (
            "test_byobnet", "test_convnext", "test_convnext2", "test_convnext3",
            "test_efficientnet", "test_efficientnet_evos", "test_efficientnet_gn",
            "test_efficientnet_ln", "test_mambaout", "test_nfnet", "test_resnet",
            "resnet10t", "resnetv2_18", "mobilenetv3_small_050", "mobilevit_xxs", "mobilevitv2_050",
            "edgenext_xx_small", "convnext_atto", "convnextv2_atto", "efficientvit_b0",
            "ghostnet_050", "lcnet_035", "tinynet_e", "repghostnet_050", "inception_next_atto",
            "starnet_s050", "regnetx_002", "pvt_v2_b0", "fastvit_t8",
        )
    },
    **{f"timm test_vit{number}": _timm(f"test_vit{number}", 160) for number in ("", 2, 3, 4)},
    "timm vit_tiny": _timm("vit_tiny_patch16_224", img_size=64, depth=2),
    "timm eva02_tiny": _timm("eva02_tiny_patch14_224", 56, img_size=56, depth=2),
    "timm swin_tiny": _timm(
        "swin_tiny_patch4_window7_224", 56, img_size=56, embed_dim=12, depths=(2, 2),
        num_heads=(1, 2),
    ),
    "timm levit_128s": _timm("levit_128s", 224),
    "timm tiny_vit_5m": _timm("tiny_vit_5m_224", 64),
    "timm xcit_nano_12": _timm("xcit_nano_12_p16_224", img_size=64),
    "timm coat_lite_tiny": _timm("coat_lite_tiny", 64, img_size=64),
    "timm mixer": (lambda: First(_mixer()), images(32)),
    "timm poolformer": (lambda: First(_poolformer()), images(64)),
    "transformers BERT": _text("Bert", **BERT),
    "transformers BERT, no padding": _text("Bert", padded=False, **BERT),
    "transformers RoBERTa": _text("Roberta", **BERT),
    "transformers ALBERT": _text("Albert", embedding_size=8, **BERT),
    "transformers ELECTRA": _text("Electra", embedding_size=8, **BERT),
    "transformers DistilBERT": _text(
        "DistilBert", dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32
    ),
    "transformers DeBERTa-v2": _text(
        "DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8,
        **BERT,
    ),
    "transformers MPNet": _text("MPNet", **BERT),
    "transformers FNet": _text("FNet", padded=False, **BERT),
    "transformers GPT-2": _text("GPT2", **GPT),
    "transformers GPT-2, no padding": _text("GPT2", padded=False, **GPT),
    "transformers GPT-Neo": _text(
        "GPTNeo", hidden_size=16, num_layers=2, num_heads=2, max_position_embeddings=32,
        attention_types=[[["global", "local"], 1]], window_size=4,
    ),
    "transformers GPT-NeoX": _text("GPTNeoX", **BERT),
    "transformers GPT-J": _text("GPTJ", rotary_dim=4, **GPT),
    "transformers OPT": _text("OPT", word_embed_proj_dim=16, ffn_dim=32, **{
        k: v for k, v in BERT.items() if k != "intermediate_size"
    }),
    "transformers BLOOM": _text("Bloom", hidden_size=16, n_layer=2, n_head=2),
    "transformers Llama": _text("Llama", **LLAMA),
    "transformers Mistral": _text("Mistral", sliding_window=4, **LLAMA),
    "transformers Qwen2": _text("Qwen2", **LLAMA),
    "transformers Gemma": _text("Gemma", head_dim=8, **LLAMA),
    "transformers Phi": _text("Phi", **BERT),
    "transformers Falcon": _text(
        "Falcon", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, alibi=True
    ),
    "transformers StableLM": _text("StableLm", **LLAMA),
    "transformers Mixtral": _text(
        "Mixtral", num_local_experts=2, experts_implementation="eager", **LLAMA
    ),
    "transformers OLMo": _text("Olmo", **LLAMA),
    "transformers T5": _text("T5", decoder_start_token_id=0, **T5),
    "transformers BART": _text("Bart", **BART),
    "transformers Pegasus": _text("Pegasus", **BART),
    "transformers Mamba": _text(
        "Mamba", padded=False, hidden_size=16, num_hidden_layers=2, state_size=4
    ),
    "transformers XLNet": _text("XLNet", d_model=16, n_layer=2, n_head=2, d_inner=32),
    "transformers ViT": _seen("ViT", images(16), 16, **VIT),
    "transformers BEiT": _seen("Beit", images(16), 16, use_relative_position_bias=True, **VIT),
    "transformers Swin": _seen(
        "Swin", images(32), 16, image_size=32, patch_size=4, embed_dim=8, depths=[2, 2],
        num_heads=[1, 2], window_size=4,
    ),
    "transformers SegFormer": _seen(
        "Segformer", images(32), 32, -1, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 1],
        hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
    ),
    "transformers ConvNeXt": _seen(
        "ConvNext", images(32), 32, -1, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]
    ),
    "transformers Wav2Vec2": _seen("Wav2Vec2", lambda: torch.randn(SAMPLES, 400), 16, **SOUND),
    "transformers HuBERT": _seen("Hubert", lambda: torch.randn(SAMPLES, 400), 16, **SOUND),
}  # fmt: skip


def _vision_transformer() -> nn.Module:
    from torchvision.models import VisionTransformer

    return VisionTransformer(16, 4, 2, 2, 16, 32, num_classes=3)


def _swin() -> nn.Module:
    from torchvision.models import SwinTransformer

    return SwinTransformer([4, 4], 8, [2, 2], [1, 2], [4, 4], num_classes=3)


def _mixer() -> nn.Module:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(num_classes=3, img_size=32, patch_size=8, num_blocks=2, embed_dim=32)


def _poolformer() -> nn.Module:
    from timm.models.metaformer import MetaFormer

    return MetaFormer(num_classes=3, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32))


def reference(network: nn.Module, x: Tensor) -> np.ndarray:
    """K by autograd, float64."""
    network = network.double().eval()
    x = x.double() if x.is_floating_point() else x
    rows = []
    for sample in x:
        fresh = copy.deepcopy(network)
        weights = [p for p in fresh.parameters() if p.requires_grad]
        f = fresh(torch.stack([sample, sample]))[0, 0]
        found = torch.autograd.grad(f, weights, allow_unused=True)
        rows.append(
            torch.cat(
                [
                    (torch.zeros_like(p) if g is None else g).flatten()
                    for p, g in zip(weights, found, strict=True)
                ]
            )
        )
    gradients = torch.stack(rows).detach().numpy()
    return gradients @ gradients.T


def _answer(close: bool, inside: bool, kernel: Any, exact: np.ndarray) -> str:
    if not inside or np.linalg.norm(kernel.matrix - exact) > kernel.error:
        return "wrong"
    return "right" if close else "right: within its error; the network computes in float32"


def measured(name: str) -> dict:
    """A row of the table."""
    import ntkcond

    build, samples = MODELS[name]
    torch.manual_seed(0)
    network = build().eval()
    torch.manual_seed(1)
    x = samples()
    weights = sum(p.numel() for p in network.parameters() if p.requires_grad)
    row: dict = {"model": name, "weights": weights, "answer": "", "verdict": ""}
    try:
        exact = reference(copy.deepcopy(network), x)
    except Exception as error:
        return row | {"answer": f"no reference: {type(error).__name__}: {str(error)[:120]}"}
    values = np.linalg.eigvalsh(exact)
    row["kappa"] = values[-1] / values[0]
    start = time.perf_counter()
    try:
        kernel = ntkcond.kernel(network, x)
        spectrum = ntkcond.condition_number(kernel)
    except ntkcond.UserError as error:
        return row | {"answer": f"refused: {str(error)[:160]}"}
    except Exception as error:
        return row | {"answer": f"crash: {type(error).__name__}: {str(error)[:160]}"}
    scale = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
    own = 1e-15 * row["kappa"]  # what the reference may be off by, relative to κ
    inside = (
        spectrum.kappa_lower <= row["kappa"] * (1 + own)
        and row["kappa"] * (1 - own) <= spectrum.kappa_upper
    )
    off = float((np.abs(kernel.matrix - exact) / scale).max())
    return row | {
        "off": off, "error": kernel.error / np.linalg.norm(exact), "kinks": kernel.kinks,
        "verdict": spectrum.verdict, "inside": bool(inside),
        "answer": _answer(off <= CLOSE, inside, kernel, exact),
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--one", action="store_true", help="a row, as JSON")
    chosen = options.parse_args()
    if chosen.one:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(chosen.names[0])))
        return
    rows = []
    for name in chosen.names or MODELS:
        command = [sys.executable, __file__, "--one", name]
        ran = subprocess.run(command, capture_output=True, text=True)
        try:
            row = json.loads(ran.stdout.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            row = {"model": name, "answer": f"crash: exit status {ran.returncode}"}
        rows.append(row)
        print(
            f"{len(rows):3d} {name:34s} {row['answer'][:100]} {row.get('verdict', '')}", flush=True
        )
    table = pd.DataFrame(rows)
    known = table[(table.kappa * SAMPLES * 2**-53 < KNOWN) & (table.kappa > 0)]
    resolved = (known.verdict == "resolved").sum()
    print(table.answer.str.partition(":")[0].value_counts().to_string())
    print(f"resolved: {resolved} of the {len(known)} whose κ n u is below {KNOWN:g}")
    if not chosen.names:
        table = table.assign(command="python benchmarks/models.py", when=date.today())
        table.to_csv(TABLE, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
