# Short names for scripts/run, which does the work and needs no make.
.PHONY: sample window test check package docs format pictures notebooks golden doctor setup
sample window test check package docs format pictures notebooks golden doctor setup:
	@scripts/run $@
