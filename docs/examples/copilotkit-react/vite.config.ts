import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const threadcast = "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  server: {
    // In development threadcast is reached through Vite, so that page and server have one origin.
    // changeOrigin stays off: the server builds the address of its socket from the Host header.
    proxy: { "/api/copilotkit": threadcast, "/client": { target: threadcast, ws: true } },
  },
  build: { chunkSizeWarningLimit: 4096 }, // the chat brings highlighting and diagrams with it
});
