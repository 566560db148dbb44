import { runAgent } from '../agent/run-agent.ts';
import { DEFAULT_TIMING } from '../core/dynamic/agent/health.ts';
import { renderAgentMetrics } from '../core/dynamic/agent/metrics.ts';
import type { AgentState } from '../core/dynamic/agent/state.ts';
import { AppError, type ExitCode, usageError } from '../core/errors.ts';
import { type LiveChange, loadCatalogue } from '../core/kubelet/catalogue.ts';
import { parseGoDuration } from '../core/text/go-duration.ts';
import type { LocalAnswer, LocalServer, Services } from '../ports/services.ts';
import { observeKubelet } from '../workflows/observe-kubelet.ts';
import type { CommandOptions } from './program.ts';
import { flagText, verbosityOf } from './read-options.ts';

/** `agent`: runs until it is stopped. Exit code 0 when that was asked for by a signal. */
export async function runAgentCommand(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  if (args.length > 0) throw usageError(`agent takes no arguments: ${args.join(' ')}`);
  const file = flagText(options, 'kubeconfig') ?? '';
  const [trialMs, spreadMs, spareCheckpoints, listen] = [
    durationOf(options, 'trial'),
    durationOf(options, 'spread'),
    countOf(options, 'keep'),
    addressOf(options),
  ];
  const catalogue = await loadCatalogue();
  const context = flagText(options, 'context');
  const kubeconfig = await services.input.readText(file);
  const host = await services.connectHost({});
  const cluster = await services.connectCluster({ kubeconfig, file, ...(context === undefined ? {} : { context }) });
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  let state: AgentState | null = null;
  let server: LocalServer | null = null;
  try {
    const nodeName = flagText(options, 'nodeName') ?? (await observeKubelet(host, catalogue, services.signal)).nodeName;
    if (nodeName === null) throw usageError('the name of the Node is not known', 'Name it with --node-name');
    server = listen === null ? null : await serve(services, listen, () => state);
    await runAgent({
      nodeName: nodeName.toLowerCase(),
      cluster,
      host,
      clock: services.clock,
      reporter,
      random: () => services.random(),
      catalogue,
      directory: flagText(options, 'directory') ?? '',
      localConfig: flagText(options, 'localConfig') ?? '',
      namespace: flagText(options, 'namespace') ?? '',
      allow: (flagText(options, 'allow') ?? 'safe') as LiveChange,
      timing: { ...DEFAULT_TIMING, trialMs },
      spareCheckpoints,
      spreadMs,
      signal: services.signal,
      onState: (next) => {
        state = next;
      },
    });
    return 0;
  } finally {
    await server?.close();
    await cluster.close();
    await host.close();
  }
}

async function serve(services: Services, { host, port }: Address, stateOf: () => AgentState | null): Promise<LocalServer> {
  try {
    return await services.serveLocal(host, port, (path) => answer(path, stateOf()));
  } catch (cause) {
    const message = `cannot serve /metrics on ${host}:${port}: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new AppError({ code: 'AGENT_LISTEN', message, mend: 'Name another address with --listen' }, { cause });
  }
}

function answer(path: string, state: AgentState | null): LocalAnswer | null {
  const type = 'text/plain; charset=utf-8';
  if (path === '/healthz') return state === null ? { status: 503, type, body: 'starting\n' } : { status: 200, type, body: 'ok\n' };
  if (path === '/metrics' && state !== null)
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: renderAgentMetrics(state) };
  return null;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

function addressOf(options: CommandOptions): Address | null {
  const text = flagText(options, 'listen') ?? '';
  if (text === '') return null;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:\s]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535)
    throw usageError(`--listen: ${JSON.stringify(text)} is no address and port`, 'Write it like 127.0.0.1:10246');
  return { host: (match[1] ?? match[2]) as string, port };
}

function durationOf(options: CommandOptions, name: string): number {
  const text = flagText(options, name) ?? '';
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n)
    throw usageError(`--${name}: ${JSON.stringify(text)} is no duration`, 'Write it like 10m or 90s');
  return Number(nanoseconds / 1_000_000n);
}

function countOf(options: CommandOptions, name: string): number {
  const text = flagText(options, name) ?? '';
  if (!/^\d{1,4}$/.test(text)) throw usageError(`--${name}: ${JSON.stringify(text)} is no count`, 'A whole number is wanted');
  return Number(text);
}
