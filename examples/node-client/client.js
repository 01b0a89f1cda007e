#!/usr/bin/env node
// Translates the lines of standard input with `nmt-core serve`, by TranslateStream.
//
//   npm install
//   node client.js localhost:50551 < text.en > text.fr
//
// The model may be named behind the address. NMT_TOKEN holds a bearer token where the server wants one, NMT_CA a
// file with the authority that signed its certificate (then the connection is encrypted).
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const UNDER_WAY = 32;
const ROOT = path.join(__dirname, "..", "..", "proto");

function connect(address) {
  const definition = loader.loadSync("nmt_core/v1/nmt.proto", { includeDirs: [ROOT], keepCase: true, oneofs: true });
  const { NmtService } = grpc.loadPackageDefinition(definition).nmt_core.v1;
  const authority = process.env.NMT_CA;
  const credentials = authority
    ? grpc.credentials.createSsl(fs.readFileSync(authority))
    : grpc.credentials.createInsecure();
  return new NmtService(address, credentials);
}

function metadata() {
  const given = new grpc.Metadata();
  if (process.env.NMT_TOKEN) given.set("authorization", `Bearer ${process.env.NMT_TOKEN}`);
  return given;
}

// Answers come as they finish; they are written in the order of the lines.
async function main(address, model = "") {
  const client = connect(address);
  const stream = client.TranslateStream(metadata());
  const finished = new Map();
  let asked = 0;
  let written = 0;
  let wake = () => {};

  const ended = new Promise((resolve, reject) => {
    stream.on("end", resolve);
    stream.on("error", reject);
  });
  stream.on("data", ({ id, outcome, response, error }) => {
    const problem = outcome === "error" ? error : response.sentences[0].error;
    if (problem) stream.destroy(new Error(`line ${Number(id) + 1}: ${problem.message}`));
    else finished.set(Number(id), response.sentences[0].translations[0].text);
    for (; finished.has(written); written += 1) {
      process.stdout.write(`${finished.get(written)}\n`);
      finished.delete(written);
    }
    wake();
  });

  const send = async () => {
    for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
      while (asked - written >= UNDER_WAY) await new Promise((resolve) => (wake = resolve));
      stream.write({ id: String(asked), request: { model, texts: [line], raw: true, priority: "PRIORITY_BULK" } });
      asked += 1;
    }
    stream.end();
  };
  await Promise.race([ended, send().then(() => ended)]);
  client.close();
}

if (process.argv.length < 3) {
  console.error("usage: node client.js HOST:PORT [MODEL] < text");
  process.exit(2);
}
main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(`client.js: ${error.details || error.message}`);
  process.exit(2);
});
