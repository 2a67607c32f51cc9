"""How a claim is judged: its findings; what seeds decide (`over_seeds`); whether a curve rises or
falls (`trend`)."""
