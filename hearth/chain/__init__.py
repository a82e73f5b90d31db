"""The chain as the rest of Hearth sees it: one narrow port, a web3.py implementation and a scripted fake."""
