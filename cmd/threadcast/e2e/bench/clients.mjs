// The packages under test: CopilotKit's client with the phoenix that it comes with, and the newest of AG-UI's.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Tapped } from "./tap.mjs";

globalThis.WebSocket = Tapped; // before the client is loaded: phoenix looks for it then
globalThis.window ??= globalThis; // without it CopilotKitCore does not ask for /info

export const packages = {}; // core, phoenix, phoenixVersion

export const load = async (name) => {
  packages.core = await import(name);
  const require = createRequire(new URL(`../node_modules/${name}/package.json`, import.meta.url));
  const folder = dirname(require.resolve("phoenix"));
  packages.phoenix = await import(join(folder, "phoenix.mjs"));
  packages.phoenixVersion = JSON.parse(readFileSync(join(folder, "..", "..", "package.json"), "utf8")).version;
};
