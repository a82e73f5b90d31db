// Rules that leave files out of a job, and what Python takes for white space and for the end of a line (hearth/storage/ignore.py, hearth/jobfile/workdir.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/ignore.py.

export const USUAL = ["__pycache__/", ".venv/", ".hearthignore"] as const;

export const ALWAYS = [
  ".git/",
  ".hearth/",
  ".env",
  ".env.*",
  ".envrc",
  ".netrc",
  "_netrc",
  ".npmrc",
  ".pypirc",
  ".pgpass",
  ".htpasswd",
  ".vault-token",
  ".git-credentials",
  "stored_tokens",
  "kaggle.json",
  "id_rsa",
  "id_dsa",
  "id_ecdsa",
  "id_ed25519",
  "id_*_sk",
  ".my.cnf",
  ".s3cfg",
  ".boto",
  "*.env",
  ".bash_history",
  ".zsh_history",
  "application_default_credentials.json",
  ".ssh/",
  ".gnupg/",
  ".aws/",
  ".azure/",
  ".kube/",
  ".docker/",
  ".kaggle/",
  ".huggingface/",
  ".password-store/",
  "hearth.toml",
  "worker.toml",
  "keeper.toml",
  "*.pem",
  "*.key",
  "*.p12",
  "*.pfx",
  "*.ppk",
  "*.jks",
  "*.keystore",
  "*.kdbx",
] as const;

export const RULE_FILES = [".gitignore", ".hearthignore"] as const;

export const SPACES = "\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000" as const;

export const LINE_ENDS = "\n\u000b\f\r\u001c\u001d\u001e\u0085\u2028\u2029" as const;
