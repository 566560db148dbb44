// npm run bench: ratios measured in one run, never absolute times.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

const bundle = fileURLToPath(new URL('../dist/kubeletadm.mjs', import.meta.url));
if (!existsSync(bundle)) {
  console.error('dist/kubeletadm.mjs is missing: npm run build makes it');
  process.exit(2);
}

const RUNS = Number(process.env.BENCH_RUNS ?? 30);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const timeMs = (args) => {
  const start = process.hrtime.bigint();
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} left with ${status}`);
  return Number(process.hrtime.bigint() - start) / 1e6;
};

/** Runs both in turn, so that what else the machine does hits both alike. */
function compare(name, args, limit) {
  const [base, ours] = [[], []];
  for (let i = 0; i < RUNS; i++) {
    base.push(timeMs(['-e', '0']));
    ours.push(timeMs(args));
  }
  const ratio = median(ours) / median(base);
  console.log(
    `${name.padEnd(36)} ${median(ours).toFixed(0).padStart(5)} ms / ${median(base).toFixed(0)} ms = ${ratio.toFixed(2)} (wanted: at most ${limit})`,
  );
}

console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'CPU'}, medians of ${RUNS} runs`);
compare('kubeletadm --help / node -e 0', [bundle, '--help'], 1.5);
