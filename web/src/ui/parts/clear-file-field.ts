// For a click on a field that picks a file. A browser is silent where the same file is picked again, though another text may stand
// in it by now.
export function clearFileField(event: { readonly currentTarget: HTMLInputElement }): void {
  event.currentTarget.value = "";
}
