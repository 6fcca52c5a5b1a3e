import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const target = process.env.THREADCAST_SERVER ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  server: {
    // In development threadcast is reached through Vite, so that page and server have one origin.
    // Not the short form, which changes the Host header: the server builds the address of its socket from that.
    proxy: { "/api/copilotkit": { target }, "/client": { target, ws: true } },
  },
  build: { chunkSizeWarningLimit: 4096 }, // the chat brings highlighting and diagrams with it
});
