"""Alerts: what begins and what stops to be so in the tables, told once each."""
