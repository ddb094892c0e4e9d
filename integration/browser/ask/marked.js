// Every value that says where in its document it stands.
() => [...document.querySelectorAll("[data-path]")].map((element) => ({
  path: element.dataset.path, held: element.dataset.value, said: element.textContent.trim(),
  document: element.closest("[data-document]")?.dataset.document ?? null,
  run: element.closest("[data-run]")?.dataset.run ?? null,
}))
