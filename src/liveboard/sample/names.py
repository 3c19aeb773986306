"""Names of people who are not there."""

from __future__ import annotations


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


FIRST_NAMES = words("""
    Ada Alan Amara Anika Arjun Barbara Carlos Chidi Claude Dorothy Edsger Elena Emeka Erik Fatima Frances
    Grace Hana Hedy Hugo Ines Ivan Jamal Jean Joana Kenji Kofi Leila Linus Lucia Magnus Maryam Mateo Mei
    Nadia Niklaus Noor Olga Omar Priya Radia Rosa Sanjay Sofia Tadeo Thandi Wei Yara Yusuf Zofia
""")
LAST_NAMES = words("""
    Abe Achebe Adeyemi Bauer Becker Bianchi Castro Chen Costa Diallo Dijkstra Dubois Eriksen Farouk
    Fischer Garcia Goldberg Haddad Hopper Ibrahim Ito Jansen Johnson Kaya Kim Kovacs Lamarr Larsen
    Lovelace Mbeki Mendoza Moreau Nakamura Novak Okafor Olsen Patel Perez Petrov Rossi Santos Schmidt
    Sharma Silva Tanaka Turing Virtanen Wang Wirth Yilmaz
""")
