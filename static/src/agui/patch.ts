import jsonPatch from "fast-json-patch";

/**
 * Applies a JSON Patch to a copy of the document. A patch that does not apply leaves the document as it was
 * (AG-UI 1.0, section 5.5), and says so on the console.
 */
export function applyPatch<T>(document: T, patch: unknown): T {
  if (!Array.isArray(patch)) return document;
  try {
    return jsonPatch.applyPatch(document, structuredClone(patch), true, false).newDocument;
  } catch (err) {
    console.warn("threadcast: a state patch does not apply", (err as Error).name);
    return document;
  }
}
