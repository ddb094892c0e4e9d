// What the page is made of, for those who do not see it.
() => ({
  title: document.title, lang: document.documentElement.lang,
  h1: [...document.querySelectorAll("h1")].map((head) => head.textContent.trim()),
  levels: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((head) => Number(head.tagName[1])),
  landmarks: ["header", "main", "footer"].filter((name) => document.querySelectorAll(`body > ${name}`).length === 1),
  ids: [...document.querySelectorAll("[id]")].map((element) => element.id).filter((id, at, all) => all.indexOf(id) !== at),
  dead: [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href"))
    .filter((href) => !document.getElementById(decodeURIComponent(href.slice(1)))),
  outside: [...document.querySelectorAll("[src], link, a[href]")].map((element) => element.getAttribute("src") ?? element.getAttribute("href"))
    .filter((address) => address && !address.startsWith("#") && !address.startsWith("data:")),
  unnamed: [...document.querySelectorAll("table:not(:has(caption)), figure:not(:has(figcaption)), .panel:not([aria-label])")].length,
})
