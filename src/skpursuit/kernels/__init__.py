"""Compiled inner loops: functions of arrays, nothing else."""
