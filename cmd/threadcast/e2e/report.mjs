// What the scripts tell the test that runs them: a line of JSON for each fact.

export const report = (fact, more = {}) => console.log(JSON.stringify({ fact, ...more }));

// fail ends the script; the test shows why.
export const fail = (why) => {
  report("failed", { why: String(why?.stack ?? why) });
  process.exit(1);
};

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
