# Short names for scripts/run, which does the work and needs no make.
.PHONY: sample test check docs format golden doctor setup
sample test check docs format golden doctor setup:
	@scripts/run $@
