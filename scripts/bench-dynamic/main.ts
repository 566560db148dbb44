// npm run bench:dynamic: latency of the agent, its cost when idle, and the API server load of many agents.
//
// BENCH_ROUNDS=15       good assignments, and a third as many bad ones
// BENCH_AGENTS=500      agents at one API server
// BENCH_IDLE=60         seconds of idle time
// BENCH_NODE=           the Node.js that runs the idle agent
// BENCH_EXECUTABLE=     the executable of npm run build:sea as the idle agent
// BENCH_ONLY=           names of sections: speed,idle,crowd
//
// The kubelets are stand-ins: the bench measures the agent, over SSH in the lab for latency, and in a
// separate process for cost.
import { cpus, loadavg } from 'node:os';
import { benchCrowd } from './crowd.ts';
import { benchIdle } from './idle.ts';
import { benchSpeed } from './speed.ts';

const only = (process.env.BENCH_ONLY ?? '').split(',').filter(Boolean);
const sections = { speed: benchSpeed, idle: benchIdle, crowd: benchCrowd };

process.stdout.write(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, Node.js ${process.version}\n`);
for (const [name, run] of Object.entries(sections)) if (only.length === 0 || only.includes(name)) await run();
process.exit(process.exitCode ?? 0);
