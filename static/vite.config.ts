import { defineConfig } from "vitest/config";

const server = "http://127.0.0.1:8080";

export default defineConfig({
  build: {
    target: "es2023",
    outDir: "dist",
    emptyOutDir: true, // public/.gitkeep puts dist/.gitkeep back
    assetsInlineLimit: 0, // no data: URLs, so that a strict content security policy can hold
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: { "/api": server, "/socket": { target: server, ws: true } },
  },
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    testTimeout: 60_000, // for machines that do much else besides
  },
});
