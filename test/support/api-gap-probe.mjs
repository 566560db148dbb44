// Requests a URL of an API server every 20 ms until the standard input ends. Prints the times between two good answers
// that are longer than 150 ms, in milliseconds, as JSON: [{ "startMs": 1200, "ms": 3400 }]. The first time begins with
// the first good answer, which is reported by the line "answers".
import { Agent, request } from 'node:https';

const GAP_MS = 150;
const PAUSE_MS = 20;
const [url = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: 1 });
const started = performance.now();
const gaps = [];
let last = null;
let isEnding = false;

/** Whether the API server answers with 200 within half a second. */
const answers = () =>
  new Promise((resolve) => {
    const asked = request(url, { agent, timeout: 500 }, (response) => {
      response.resume();
      response.on('close', () => resolve(response.complete && response.statusCode === 200));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });

process.stdout.on('error', () => process.exit());
process.stdin.on('end', () => {
  isEnding = true;
});
process.stdin.resume();
while (!isEnding) {
  if (await answers()) note();
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
// A gap that has not ended counts too.
if (last !== null && performance.now() - last > GAP_MS) note();
process.stdout.write(`${JSON.stringify(gaps)}\n`);
agent.destroy();

function note() {
  const now = performance.now();
  if (last === null) process.stdout.write('answers\n');
  else if (now - last > GAP_MS) gaps.push({ startMs: Math.round(last - started), ms: Math.round(now - last) });
  last = now;
}
