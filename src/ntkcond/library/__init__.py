"""What serves any torch module, and any given NTK: the functions of `import ntkcond`."""
