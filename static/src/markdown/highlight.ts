import type { HLJSApi } from "highlight.js";

let loading: Promise<HLJSApi> | undefined;

/** Code with its syntax marked up as HTML, or undefined if the language is not known. Loads the highlighter when first needed. */
export async function highlight(code: string, language: string): Promise<string | undefined> {
  loading ??= import("./languages").then((module) => module.default);
  const hljs = await loading;
  if (!hljs.getLanguage(language)) return undefined;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
