// The bench: a process with unmodified clients that tries what is asked of it.
//
//   node bench/main.mjs CLIENT DESK-URL
//
// CLIENT is one of the packages copilotkit-... of package.json. A POST of {statement, line, url} tries a statement: url is where
// the server is, over the line of that name, whose faults the statement asks for at the desk. The answer is {error, measured}.

import { createServer } from "node:http";
import { fail, report } from "../report.mjs";
import { load } from "./clients.mjs";
import { newWorld } from "./world.mjs";
import * as phoenix from "./phoenix.mjs";
import * as select from "./select.mjs";
import * as run from "./run.mjs";
import * as connect from "./connect.mjs";
import * as stop from "./stop.mjs";
import * as loss from "./loss.mjs";
import * as list from "./list.mjs";
import * as sse from "./sse.mjs";
import * as whole from "./whole.mjs";
import * as kills from "./kills.mjs";

const [client, desk] = process.argv.slice(2);
await load(client);

const statements = { ...phoenix, ...select, ...run, ...connect, ...stop, ...loss, ...list, ...sse, ...whole, ...kills };

const attempt = async ({ statement, line, url }) => {
  const world = newWorld({ statement, line, url, desk });
  let told;
  try {
    told = { error: "", ...await statements[`s${statement}`](world) };
  } catch (error) {
    told = { error: `${error?.stack ?? error}\n${world.remarks.join("\n")}` };
  }
  await world.close(told.error !== "");
  return told;
};

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  response.end(JSON.stringify(await attempt(JSON.parse(body))));
});
server.listen(0, "127.0.0.1", () => report("listening", { url: `http://127.0.0.1:${server.address().port}/` }));
server.on("error", fail);
