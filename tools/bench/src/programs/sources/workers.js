// Workers that wait on shared memory, and the thread pool under files, hashes and compression.
// Prints the same in every run.
"use strict";
const { Worker, isMainThread, workerData } = require("worker_threads");
const crypto = require("crypto");
const zlib = require("zlib");
const { promisify } = require("util");

const THREADS = 2;

function play({ shared, number, turns }) {
  const turn = new Int32Array(shared);
  for (let i = 0; i < turns; i++) {
    for (let now; (now = Atomics.load(turn, 0)) % THREADS !== number; ) Atomics.wait(turn, 0, now);
    Atomics.add(turn, 0, 1);
    Atomics.notify(turn, 0);
  }
}

async function main(turns) {
  const started = process.hrtime.bigint();
  const shared = new SharedArrayBuffer(4);
  const ended = [];
  for (let number = 0; number < THREADS; number++) {
    const worker = new Worker(__filename, { workerData: { shared, number, turns } });
    ended.push(new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject)));
  }
  await Promise.all(ended);
  console.log("turns", new Int32Array(shared)[0]);

  const hashes = [];
  for (let i = 0; i < 64; i++) {
    hashes.push(promisify(crypto.pbkdf2)("secret", `salt ${i}`, 1000, 32, "sha256"));
  }
  const all = Buffer.concat(await Promise.all(hashes));
  console.log("hashes", crypto.createHash("sha256").update(all).digest("hex"));

  const packed = await Promise.all(
    hashes.map((_, i) => promisify(zlib.deflate)(Buffer.alloc(100000, i))));
  console.log("packed", packed.reduce((sum, one) => sum + one.length, 0));
  console.error("seconds", Number(process.hrtime.bigint() - started) / 1e9);
}

if (isMainThread) main(Number(process.argv[2]));
else play(workerData);
