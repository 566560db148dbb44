import { type AppError, type ExitCode, isAppError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { CommitGoneError, commitReverted } from '../../host/commit/commit-problems.ts';
import { type CommitRecord, commitRecord } from '../../host/commit/record.ts';
import { observeHealthzUrl } from '../../kubelet/effective/healthz-url.ts';
import { waitForHealthyKubelet } from '../../kubelet/health/wait-healthy.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { type NamedHostsRequest, namedHosts } from './named-hosts.ts';

const PARALLEL = 50;
const HEALTHY_MS = 120_000;

/** `fleet confirm` and `fleet revert`: hosts by name or address, or by a selection. */
export interface CommitsRequest extends NamedHostsRequest {
  readonly reporter: Reporter;
  /** Called with the result of each host as soon as it is known; null: no change was pending. */
  onHost(name: string, finished: { readonly result: 'confirmed' | 'rolled back'; readonly record: CommitRecord } | null): void;
}

/** `fleet confirm HOST... | --group G | --limit P`: confirms a change that a run left unconfirmed. */
export function confirmCommits(services: NodeCommandPorts, request: CommitsRequest) {
  return finishCommits(services, { request, result: 'confirmed' }, async ({ host, record }) => {
    if (record.state !== 'armed') throw new CommitGoneError(host.name, record, 'nothing to confirm');
    await host.perform([
      {
        kind: 'run',
        argv: ['systemctl', 'is-active', '--quiet', 'kubelet'],
        what: 'the change is not confirmed, because the kubelet is not running: systemctl is-active kubelet',
      },
      { kind: 'confirm-commit', id: record.id },
      { kind: 'release-lock', id: record.id },
    ]);
  });
}

/** `fleet revert HOST... | --group G | --limit P`: rolls back such a change now. Waits for a healthy kubelet. */
export function revertCommits(services: NodeCommandPorts, request: CommitsRequest) {
  return finishCommits(services, { request, result: 'rolled back' }, async ({ host, record, reporter }) => {
    const why = `requested by ${services.self.name}`;
    await host.perform(
      [
        { kind: 'revert-commit', id: record.id, why },
        { kind: 'release-lock', id: record.id },
      ],
      { timeoutMs: 300_000 },
    );
    const context = { host, cluster: null, clock: services.clock, reporter, signal: services.signal };
    await waitForHealthyKubelet(context, 'revert', { url: await observeHealthzUrl(context), timeoutMs: HEALTHY_MS });
  });
}

async function finishCommits(
  services: NodeCommandPorts,
  { request, result }: { readonly request: CommitsRequest; readonly result: 'confirmed' | 'rolled back' },
  work: (waiting: { readonly host: Host; readonly record: CommitRecord; readonly reporter: Reporter }) => Promise<void>,
) {
  const hosts = await namedHosts(services, request, { changes: true });
  const isSelection = request.hosts.length === 0;
  const { reporter, onHost } = request;
  let finishedHosts = 0;
  const failures = await inParallel(hosts, PARALLEL, async ({ name, target }): Promise<AppError | null> => {
    try {
      const host = await services.connectHost(target, reporter);
      try {
        const record = await observe(host, commitRecord, services.signal);
        // A selection covers only hosts with a pending change.
        if (record === null && isSelection) return null;
        if (record === null) {
          finishedHosts++;
          onHost(name, null);
          return null;
        }
        if (record.state === 'reverted') throw commitReverted(name, record);
        await work({ host, record, reporter });
        finishedHosts++;
        onHost(name, { result, record });
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
  const shared = new Set(failed.map((failure) => failure.exitCode));
  const [first = 0] = shared;
  // Some failed, or all failed for different reasons.
  const exitCode: ExitCode = failed.length === 0 ? 0 : failed.length < hosts.length ? 4 : shared.size === 1 ? first : 1;
  return { finishedHosts, exitCode, problems: failed.flatMap(({ problems }) => problems) };
}
