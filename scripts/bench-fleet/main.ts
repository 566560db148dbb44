// npm run bench:fleet: time to write a kubelet's files to many hosts over SSH, compared with other tools in
// one run, in turn.
//
// BENCH_HOSTS=50        hosts of the main comparison
// BENCH_ROUNDS=9        runs of each contestant in that comparison; medians are compared
// BENCH_SLOW=1          runs of Ansible in its three modes, which takes minutes
// BENCH_LARGE=0         1: also 1,000 hosts
// BENCH_ONLY=           names of sections: compare,one,network,again,dead,bastion,growth
//
// The local sshd must accept logins of the current user; contestants that are not installed are skipped and
// listed.
import { execFileSync } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { type Contestant, FORKS, makeContestants, type Run } from './contestants.ts';
import { startRelay } from './relay.ts';
import { startSilentHost, startWorld, type World } from './world.ts';

const PORT = Number(process.env.BENCH_PORT ?? 22_022);
const RELAY_PORT = PORT + 1;
const BASTION_PORT = PORT + 2;
const DEAD_PORT = PORT + 3;
const HOSTS = Number(process.env.BENCH_HOSTS ?? 50);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9);
const SLOW_ROUNDS = Number(process.env.BENCH_SLOW ?? 1);
const ONLY = (process.env.BENCH_ONLY ?? '').split(',').filter(Boolean);

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** One figure and its target. */
function validate(what: string, measured: number, desired: number, unit: string): void {
  const shown = `${Number.isInteger(measured) ? measured : measured.toFixed(2)}${unit}`;
  print(`  ${measured <= desired ? 'met   ' : 'MISSED'}  ${what}: ${shown} (wanted: at most ${desired}${unit})`);
}

function judgeAtLeast(what: string, measured: number, desired: number, unit: string): void {
  print(`  ${measured >= desired ? 'met   ' : 'MISSED'}  ${what}: ${measured.toFixed(1)}${unit} (wanted: at least ${desired}${unit})`);
}

/**
 * Runs the contestants in turn; each round starts with the next one, so that other load on the host and
 * effects of the previous run affect all equally. Each run starts with empty hosts and is verified
 * independently.
 */
async function inTurn(
  world: World,
  contestants: readonly Contestant[],
  roundsOf: (name: string) => number,
): Promise<Map<string, number[]>> {
  const walls = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  const rounds = Math.max(...contestants.map(({ name }) => roundsOf(name)));
  for (let round = 0; round < rounds; round++) {
    const present = contestants.filter(({ name }) => round < roundsOf(name));
    const first = round % present.length;
    for (const contestant of [...present.slice(first), ...present.slice(0, first)]) {
      const { wallMs } = await runChecked(world, contestant, { addresses: world.addresses, port: world.port });
      walls.get(contestant.name)?.push(wallMs);
    }
  }
  return walls;
}

async function runChecked(world: World, contestant: Contestant, where: Parameters<Contestant['run']>[0]): Promise<Run> {
  world.reset();
  const run = await contestant.run(where);
  const [failure] = run.outcome?.failed ?? [];
  if (failure !== undefined) throw new Error(`${contestant.name}: ${failure}`);
  world.verify(1, where.addresses);
  return run;
}

async function inWorld(count: number, use: (world: World, contestants: readonly Contestant[]) => Promise<void>): Promise<void> {
  const world = await startWorld(count, PORT);
  try {
    await use(world, await makeContestants(world));
  } finally {
    await world.stop();
  }
}

const [OURS, LOCKED, RAW] = ['kubeletadm', 'kubeletadm, each host locked', 'ssh HOST sh -s, in parallel'];

async function compare(): Promise<void> {
  print(`\n${HOSTS} hosts, cold: four files and a restart each`);
  await inWorld(HOSTS, async (world, contestants) => {
    for (const { name, missing } of contestants) if (missing !== null) print(`  skipped: ${name}: ${missing} is not installed`);
    const present = contestants.filter(({ missing }) => missing === null);
    const walls = await inTurn(world, present, (name) => (name.startsWith('ansible') ? SLOW_ROUNDS : ROUNDS));
    const ours = median(walls.get(OURS) ?? []);
    const raw = median(walls.get(RAW) ?? []);
    for (const { name } of present) {
      const wall = median(walls.get(name) ?? []);
      if (!Number.isNaN(wall))
        print(
          `  ${name.padEnd(30)} ${seconds(wall).padStart(9)}  ${(wall / raw).toFixed(2).padStart(6)} x ssh  ${(wall / ours).toFixed(1).padStart(6)} x ours`,
        );
    }
    validate('ours with locks / parallel ssh', median(walls.get(LOCKED) ?? []) / raw, 1.25, '');
    for (const [name, factor] of [
      ['ansible, default', 30],
      ['ansible, tuned', 25],
      ['ansible, mitogen', 10],
    ] as const) {
      const wall = median(walls.get(name) ?? []);
      if (!Number.isNaN(wall)) judgeAtLeast(`${name} / ours`, wall / ours, factor, ' x');
    }
  });
}

async function one(): Promise<void> {
  print('\n1 host, cold');
  await inWorld(1, async (world, contestants) => {
    const two = contestants.filter(({ name }) => name === OURS || name === RAW);
    const walls = await inTurn(world, two, () => 2 * ROUNDS + 1);
    const [ours, raw] = [median(walls.get(OURS) ?? []), median(walls.get(RAW) ?? [])];
    print(`  ours ${ours.toFixed(0)} ms, ssh ${raw.toFixed(0)} ms`);
    validate('ours - ssh', Math.round(ours - raw), 150, ' ms');
  });
}

async function network(): Promise<void> {
  print('\n1 host behind a network');
  await inWorld(1, async (world, contestants) => {
    for (const roundTripMs of [0, 20, 100]) {
      for (const name of [OURS, RAW]) {
        const contestant = contestants.find((each) => each.name === name) as Contestant;
        const relay = await startRelay(world.addresses, RELAY_PORT, PORT, roundTripMs);
        const walls: number[] = [];
        try {
          for (let round = 0; round < ROUNDS; round++)
            walls.push((await runChecked(world, contestant, { addresses: world.addresses, port: relay.port })).wallMs);
          await new Promise((resolve) => setTimeout(resolve, 3 * roundTripMs + 100));
          const traffic = relay.take();
          const roundTrips = median(traffic.map((each) => each.roundTrips));
          const [up, down] = [median(traffic.map((each) => each.bytesUp)), median(traffic.map((each) => each.bytesDown))];
          print(
            `  ${String(roundTripMs).padStart(3)} ms  ${name.padEnd(30)} ${seconds(median(walls)).padStart(9)}  ${roundTrips} round trips, ${up} bytes up, ${down} down`,
          );
        } finally {
          await relay.stop();
        }
      }
    }
  });
}

async function again(): Promise<void> {
  print(`\n${HOSTS} hosts, again`);
  await inWorld(HOSTS, async (world, contestants) => {
    const ours = contestants.find(({ name }) => name === OURS) as Contestant;
    const [applied, noop, some]: [number[], number[], number[]] = [[], [], []];
    let changedAgain = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const where = { addresses: world.addresses, port: world.port };
      applied.push((await runChecked(world, ours, where)).wallMs);
      const second = await ours.run(where);
      noop.push(second.wallMs);
      changedAgain += second.outcome?.changed ?? 0;
      world.verify(1);
      const touched = world.addresses.filter((_, i) => i % 10 === 0);
      for (const address of touched) world.touch(address);
      const third = await ours.run(where);
      some.push(third.wallMs);
      if (third.outcome?.changed !== touched.length) throw new Error(`${third.outcome?.changed} hosts changed, not ${touched.length}`);
    }
    print(
      `  apply ${seconds(median(applied))}, nothing to do ${seconds(median(noop))}, one file on a tenth of them ${seconds(median(some))}`,
    );
    validate('writes and restarts of the run with nothing to do', changedAgain, 0, '');
    validate('nothing to do / apply', median(noop) / median(applied), 0.9, '');
  });
}

async function dead(): Promise<void> {
  print(`\n${HOSTS} hosts and one that is dead (time-out 10 s)`);
  await inWorld(HOSTS, async (world, contestants) => {
    const ours = contestants.find(({ name }) => name === OURS) as Contestant;
    const alive = (await runChecked(world, ours, { addresses: world.addresses, port: world.port })).outcome;
    const silent = await startSilentHost(DEAD_PORT);
    world.reset();
    const run = await ours.run({ addresses: [`127.0.0.1:${DEAD_PORT}`, ...world.addresses], port: world.port, connectTimeoutMs: 10_000 });
    await silent.stop();
    world.verify(1);
    print(`  ${run.outcome?.failed.join('; ')}`);
    print(
      `  the others were done after ${seconds(run.outcome?.doneMs ?? 0)} (without it ${seconds(alive?.doneMs ?? 0)}), all after ${seconds(run.wallMs)}`,
    );
    validate('the time-out is waited for once', run.wallMs / 1000, 11.5, ' s');
    validate('the others, with / without it', (run.outcome?.doneMs ?? 0) / (alive?.doneMs ?? 1), 1.5, '');
  });
}

async function bastion(): Promise<void> {
  print(`\n${HOSTS} hosts behind a bastion with the limits sshd comes with`);
  await inWorld(HOSTS, async (world, contestants) => {
    const ours = contestants.find(({ name }) => name === OURS) as Contestant;
    const hop = await world.startBastion(BASTION_PORT);
    let lost = 0;
    const walls: number[] = [];
    try {
      for (let round = 0; round < 20; round++) {
        world.reset();
        const run = await ours.run({ addresses: world.addresses, port: world.port, bastion: { address: '127.0.0.1', port: BASTION_PORT } });
        lost += run.outcome?.failed.length ?? 0;
        walls.push(run.wallMs);
      }
      print(`  ${seconds(median(walls))}; ${hop.logins()} logins on the bastion in 20 runs`);
      validate('lost logins in 20 runs', lost, 0, '');
    } finally {
      await hop.stop();
    }
  });
}

async function growth(): Promise<void> {
  print('\nOurs as the fleet grows');
  const walls = new Map<number, number>();
  for (const count of [10, 100, 200, ...(process.env.BENCH_LARGE === '1' ? [1000] : [])]) {
    await inWorld(count, async (world, contestants) => {
      const ours = contestants.find(({ name }) => name === OURS) as Contestant;
      const runs: Run[] = [];
      for (let round = 0; round < (count >= 200 ? 1 : ROUNDS); round++)
        runs.push(await runChecked(world, ours, { addresses: world.addresses, port: world.port }));
      const wall = median(runs.map(({ wallMs }) => wallMs));
      const rss = Math.max(...runs.map(({ outcome }) => outcome?.rssMiB ?? 0));
      walls.set(count, wall);
      print(`  ${String(count).padStart(5)} hosts  ${seconds(wall).padStart(9)}  ${rss} MiB`);
      if (count === 200) validate('memory at 200 hosts', rss, 120, ' MiB');
      if (count === 1000) validate('memory at 1,000 hosts', rss, 250, ' MiB');
    });
  }
  const ratio = (a: number, b: number): number => (walls.get(a) ?? 0) / (walls.get(b) ?? 1);
  validate('T(100) / T(10)', ratio(100, 10), 10, '');
  if (walls.has(1000)) validate('T(1000) / T(100)', ratio(1000, 100), 10.5, '');
}

async function main(): Promise<void> {
  const ssh = execFileSync('/bin/sh', ['-c', 'ssh -V 2>&1'], { encoding: 'utf8' });
  print(`${cpus().length} x ${cpus()[0]?.model ?? 'CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, node ${process.version}, ${ssh.trim()}`);
  print(
    `load before: ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}; at most ${FORKS} hosts at a time; servers and clients share the host`,
  );
  for (const [name, section] of Object.entries({ compare, one, network, again, dead, bastion, growth }))
    if (ONLY.length === 0 || ONLY.includes(name)) await section();
}

main().catch((error: unknown) => {
  process.stderr.write(`bench:fleet: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
