"""The command line: each command is a thin call of one public method of `hearth.client.Client`."""
