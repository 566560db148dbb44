import { type CommitRecord, commitRecord } from '../core/commit/record.ts';
import { AppError, type ExitCode, isAppError, usageError } from '../core/errors.ts';
import { CommitGoneError, commitReverted, describeChangeOf } from '../core/problems/commit.ts';
import { inParallel } from '../engine/in-parallel.ts';
import { waitForHealthyKubelet } from '../engine/kubelet-health.ts';
import { observe } from '../engine/observe.ts';
import { tellingHost } from '../engine/telling-host.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import { fleetTargets } from './fleet-members.ts';
import { directoryOf, fleetFileOf, readFleet } from './load-fleet.ts';
import type { CommandOptions } from './program.ts';
import { flagText, readHostTarget, verbosityOf } from './read-options.ts';

const PARALLEL = 50;
const HEALTHY_MS = 120_000;

/** `fleet confirm HOST...`: keeps a change that a run did not come to confirm. */
export function runFleetConfirm(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return settle(services, { args, options, done: 'confirmed' }, async ({ host, record }) => {
    if (record.state !== 'armed') throw new CommitGoneError(host.name, record, 'nothing to confirm');
    await host.perform([
      { kind: 'run', argv: ['systemctl', 'is-active', '--quiet', 'kubelet'], what: 'not confirmed: systemctl is-active kubelet' },
      { kind: 'confirm-commit', id: record.id },
      { kind: 'release-lock', id: record.id },
    ]);
  });
}

/** `fleet revert HOST...`: takes such a change back now, and waits until the kubelet runs. */
export function runFleetRevert(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return settle(services, { args, options, done: 'taken back' }, async ({ host, record, reporter }) => {
    const why = `${services.self.name} asked for it`;
    await host.perform(
      [
        { kind: 'revert-commit', id: record.id, why },
        { kind: 'release-lock', id: record.id },
      ],
      { timeoutMs: 300_000 },
    );
    const context = { host, cluster: null, clock: services.clock, reporter, signal: services.signal };
    await waitForHealthyKubelet(context, 'revert', { url: null, timeoutMs: HEALTHY_MS });
  });
}

interface Settling {
  readonly args: readonly string[];
  readonly options: CommandOptions;
  /** What is said of a host. */
  readonly done: string;
}

interface Waiting {
  readonly host: Host;
  readonly record: CommitRecord;
  readonly reporter: Reporter;
}

async function settle(services: Services, { args, options, done }: Settling, work: (waiting: Waiting) => Promise<void>): Promise<ExitCode> {
  if (args.length === 0) throw usageError('no host was given', 'Name hosts of the fleet file, or addresses');
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const targetOf = await readTargets(services, args, options);
  const failures = await inParallel(args, PARALLEL, async (name): Promise<AppError | null> => {
    try {
      const host = tellingHost(await services.connectHost(await targetOf(name)), reporter);
      try {
        const record = await observe(host, commitRecord, services.signal);
        if (record === null) throw new CommitGoneError(name, null, 'nothing to do');
        if (record.state === 'reverted') throw commitReverted(name, record);
        await work({ host, record, reporter });
        services.output.stdout(`${name}: ${done}: ${describeChangeOf(record)}\n`);
        return null;
      } finally {
        await host.close();
      }
    } catch (error) {
      if (isAppError(error)) return error;
      throw error;
    }
  });
  const failed = failures.filter((failure) => failure !== null);
  if (failed.length === 0) return 0;
  const [first] = failed as [AppError, ...AppError[]];
  const exitCode = failed.length < args.length ? 4 : failed.every((failure) => failure.exitCode === first.exitCode) ? first.exitCode : 1;
  throw new AppError(
    failed.flatMap(({ problems }) => problems),
    { exitCode },
  );
}

/** Names are looked up in the fleet file, where there is one; what is not in it, and no file was named, is an address. */
async function readTargets(
  services: Services,
  args: readonly string[],
  options: CommandOptions,
): Promise<(name: string) => Promise<HostTarget>> {
  const isNamed = flagText(options, 'file') !== undefined;
  if (!isNamed && !(await services.input.exists(fleetFileOf(options)))) return (name) => readHostTarget(services, name, options);
  const fleet = await readFleet(services, options);
  const ofFleet = await fleetTargets(services, options, directoryOf(fleet.file));
  const hosts = new Map(fleet.hosts.map((host) => [host.name, host]));
  const unknown = args.find((name) => !hosts.has(name));
  if (isNamed && unknown !== undefined)
    throw usageError(`${fleet.file} has no host ${unknown}`, `kubeletadm fleet inventory -f ${fleet.file} lists them`);
  return async (name) => {
    const host = hosts.get(name);
    return host === undefined ? readHostTarget(services, name, options) : ofFleet(host);
  };
}
