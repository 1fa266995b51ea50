"""What users decorate and annotate kernels with; no body is read here."""
