// Files from the page to the reader's disk, as downloads.

export function save(parts: readonly BlobPart[], name: string, kind = "application/octet-stream"): void {
  const url = URL.createObjectURL(new Blob([...parts], { type: kind }));
  const link = document.createElement("a");
  link.href = url;
  // A stranger may have named the file: no path, no hidden name, nothing that reorders what is read.
  link.download = name.replace(/[^\p{L}\p{N} ._-]/gu, "_").replace(/^[.\s]+/, "_").slice(0, 120) || "file";
  link.click();
  // The download has its own hold on the bytes once it has begun.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
