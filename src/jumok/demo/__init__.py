"""The built-in corpora: English–Korean sentence pairs and labelled reviews, generated from grammars."""
