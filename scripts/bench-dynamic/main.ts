// npm run bench:dynamic: how quick the agent is, what it costs when nothing happens, and what many of them do to an API server.
//
// BENCH_ROUNDS=15       assignments, and a third as many bad ones
// BENCH_AGENTS=500      agents at one API server
// BENCH_IDLE=60         seconds without anything to do
// BENCH_ONLY=           names of sections: speed,idle,crowd
//
// The kubelets are stand-ins: what is measured is the agent, over SSH in the lab for its speed, and as a process of its own for its cost.
import { cpus, loadavg } from 'node:os';
import { benchCrowd } from './crowd.ts';
import { benchIdle } from './idle.ts';
import { benchSpeed } from './speed.ts';

const only = (process.env.BENCH_ONLY ?? '').split(',').filter(Boolean);
const sections = { speed: benchSpeed, idle: benchIdle, crowd: benchCrowd };

process.stdout.write(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, Node.js ${process.version}\n`);
for (const [name, run] of Object.entries(sections)) if (only.length === 0 || only.includes(name)) await run();
process.exit(process.exitCode ?? 0);
