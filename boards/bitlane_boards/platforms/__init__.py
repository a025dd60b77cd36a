"""Boards that amaranth-boards lacks, described in its way. Data only.

Amaranth declares a platform's data as ellipses: hence the ignored assignments.
"""
