import { describe, expect, it } from 'vitest';
import { AppError, isAppError } from '../../../src/base/errors.ts';
import type { Host } from '../../../src/host/access/host.ts';
import type { HttpFact } from '../../../src/host/facts/query.ts';
import type { PhaseContext } from '../../../src/host/phase.ts';
import type { Workflow } from '../../../src/host/run-workflow.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { encodeNodeSettings, NO_SETTINGS, NODE_SETTINGS_PATH } from '../../../src/kubeadm/node-settings/node-settings.ts';
import { type KubeletStartInput, kubeletStart } from '../../../src/kubeadm/phases/kubelet-start.ts';
import { type SaveNodeSettingsInput, saveStartedNodeSettings } from '../../../src/kubeadm/phases/save-node-settings.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { fakeUnit } from '../../support/fake-units.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { runWorkflow } from '../../support/run-workflow.ts';
import { THOROUGH } from '../../support/thorough.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const FLAGS = '/var/lib/kubelet/kubeadm-flags.env';
const RECORD = '/var/lib/kubeletadm/commit/record';
const TIMEOUT_MS = 300_000;
const BOOT_MS = 40_000;
const catalogue = await loadCatalogue();

const yaml = (maxPods: number): string => `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: ${maxPods}\n`;
const OLD: Readonly<Record<string, string>> = {
  [CONFIG]: yaml(110),
  [FLAGS]: 'KUBELET_KUBEADM_ARGS=""\n',
  [NODE_SETTINGS_PATH]: encodeNodeSettings({ ...NO_SETTINGS, settings: ['maxPods=110'] }),
};
const NEW: Readonly<Record<string, string>> = {
  [CONFIG]: yaml(50),
  [FLAGS]: 'KUBELET_KUBEADM_ARGS="--v=4"\n',
  [NODE_SETTINGS_PATH]: encodeNodeSettings({ ...NO_SETTINGS, settings: ['maxPods=50'] }),
};

interface Input {
  readonly start: KubeletStartInput;
  readonly save: SaveNodeSettingsInput;
}

const workflow: Workflow<Input, Input> = {
  name: 'test',
  phases: [kubeletStart.select(({ start }: Input) => start), saveStartedNodeSettings.select(({ save }: Input) => save)],
  prepare: async (_, input) => ({ input, warnings: [], refusals: [] }),
};

const INPUT: Input = {
  start: {
    directories: [],
    unitFiles: [],
    files: [CONFIG, FLAGS].map((path) => ({ path, content: NEW[path] ?? '', mode: 0o644, owner: 'root:root' })),
    health: { url: 'http://127.0.0.1:10248/healthz', timeoutMs: 60_000 },
    mayChown: true,
    verification: { nodeName: 'node1', minor: 36, catalogue },
  },
  save: { nodeSettings: { ...NO_SETTINGS, settings: ['maxPods=50'] }, mayChown: true },
};

/**
 * The event that interrupts the run:
 * - `reboot`: the host reboots, which reverts an armed change
 * - `lost`: the connection breaks and the program on the host exits
 * - `orphaned`: the connection breaks and the program continues
 * - `cut`: the host is unreachable until its timer has fired
 * - `operator`: an operator reverts the change by hand while the connection stays
 *
 * A host starts no revert while a program writes: the revert follows afterwards.
 */
const FAULTS = ['reboot', 'lost', 'orphaned', 'cut', 'operator'] as const;
type Fault = (typeof FAULTS)[number];

interface FlakyHost {
  readonly host: FakeHost;
  readonly clock: FakeClock;
  /** Queries, operations and program exits so far: the points at which the fault can occur. */
  readonly points: () => readonly string[];
  connect(): Promise<Host>;
}

/** A host whose connections can break. The fault occurs at these points. */
function flakyHost(fault: Fault, faultsAt: readonly number[]): FlakyHost {
  const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
  const http = (): HttpFact => (unit.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' });
  const host = fakeHost({ files: OLD, units: { kubelet: unit }, http });
  const clock = fakeClock();
  const points: string[] = [];
  let boots = 0;
  let isUp = true;
  let isWriting = false;
  let isRevertPending = false;
  const revert = (why: string): void => {
    if (host.files.has(RECORD)) host.commits.fire(why);
  };
  const strike = (): void => {
    if (fault === 'operator') {
      revert('requested by bob@desk');
      return;
    }
    boots++;
    if (fault !== 'reboot' && fault !== 'cut') return;
    isUp = false;
    if (fault === 'reboot') host.commits.lock = null;
    clock.at(clock.elapsedMs + (fault === 'reboot' ? BOOT_MS : TIMEOUT_MS), () => {
      isUp = true;
      revert(fault === 'reboot' ? 'the host was restarted before the change was confirmed' : 'the change was not confirmed within 300 s');
    });
  };
  const point = (what: string): boolean => {
    points.push(what);
    if (!faultsAt.includes(points.length)) return false;
    if (fault === 'operator' && isWriting) isRevertPending = true;
    else strike();
    return true;
  };

  const connect = async (): Promise<Host> => {
    if (!isUp) throw new AppError({ host: 'node1', code: 'HOST_UNREACHABLE', message: 'cannot reach node1' });
    const own = boots;
    const check = (): void => {
      if (boots !== own) throw new AppError({ host: 'node1', code: 'HOST_CONNECTION_LOST', message: 'the connection was lost' });
    };
    return {
      name: 'node1',
      query: async (queries, options) => {
        check();
        point('before a query');
        check();
        const answers = await host.query(queries, options);
        point('after a query');
        check();
        return answers;
      },
      perform: async (operations, options = {}) => {
        check();
        for (const [index, operation] of operations.entries()) {
          const isStruck = point(`before ${operation.kind}`);
          if (isStruck && fault === 'orphaned') await host.perform(operations.slice(index));
          check();
          isWriting ||= operation.kind === 'arm-revert' || operation.kind === 'check-commit';
          await host.perform([operation]);
          options.onDone?.(index);
        }
        isWriting = false;
        if (isRevertPending) strike();
        isRevertPending = false;
        point(`after ${operations.map(({ kind }) => kind).join(', ')}`);
        check();
      },
      close: async () => undefined,
    };
  };
  return { host, clock, points: () => points, connect };
}

/** The Node as its kubelet reports it: a heartbeat every ten seconds, and the configuration of the host. */
function clusterOf({ host, clock }: FlakyHost): Cluster {
  const node = (): never =>
    ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node1' },
      status: {
        conditions: [
          { type: 'Ready', status: 'True', lastHeartbeatTime: new Date(Math.floor(clock.elapsedMs / 10_000) * 10_000).toISOString() },
        ],
      },
    }) as never;
  return {
    ...fakeCluster(),
    get: async () => node(),
    getRaw: async () => ({ kubeletconfig: { maxPods: Number(/maxPods: (\d+)/.exec(host.text(CONFIG))?.[1]) } }) as never,
  };
}

type State = 'old' | 'new' | 'mixed';

function stateOf({ host }: FlakyHost): State {
  const files = Object.keys(OLD).map((path) => host.text(path));
  const isSame = (set: Readonly<Record<string, string>>): boolean => Object.values(set).every((text, i) => text === files[i]);
  return isSame(OLD) ? 'old' : isSame(NEW) ? 'new' : 'mixed';
}

interface Outcome {
  readonly state: State;
  readonly error: AppError | null;
  readonly elapsedMs: number;
  readonly at: string;
}

async function run(fault: Fault, ...faultsAt: readonly number[]): Promise<Outcome & { readonly points: readonly string[] }> {
  const it = flakyHost(fault, faultsAt);
  const host = await it.connect();
  const context: PhaseContext = {
    host,
    cluster: clusterOf(it),
    clock: it.clock,
    reporter: recordingReporter(),
    writing: {
      owner: { id: 'aaaa', name: 'alice@laptop', processId: 7, machine: 'laptop/1' },
      breakLock: false,
      isGone: () => false,
      confirm: { timeoutMs: TIMEOUT_MS, reconnect: it.connect },
    },
  };
  let error: AppError | null = null;
  try {
    await runWorkflow(workflow, context, INPUT, { dryRun: false, skipPhases: [] });
  } catch (cause) {
    if (!isAppError(cause)) throw cause;
    error = cause;
  }
  const { elapsedMs } = it.clock;
  // The tool has exited: the host reverts an unconfirmed change.
  it.clock.advance(2 * TIMEOUT_MS);
  if (it.host.files.has(RECORD)) it.host.commits.fire('the change was not confirmed within 300 s');
  return { state: stateOf(it), error, elapsedMs, at: faultsAt.map((at) => it.points()[at - 1]).join(', then '), points: it.points() };
}

/** The file set that the reported result implies. */
function reported({ error }: Outcome): State | 'not planned' | 'nothing reported' {
  if (error === null) return 'new';
  const codes = error.problems.map(({ code }) => code);
  if (codes.some((code) => ['ROLLED_BACK', 'COMMIT_REVERTED', 'COMMIT_UNCONFIRMED', 'COMMIT_NOT_ARMED'].includes(code))) return 'old';
  return 'nothing reported';
}

const { points: POINTS } = await run('lost');

describe.each(FAULTS)('a change interrupted by the fault %s', (fault) => {
  const first = POINTS.indexOf('before take-lock') + 1;

  it.each(POINTS.map((what, i) => [i + 1, what] as const).slice(first - 1))(
    'leaves the files completely old or completely new at point %i, %s',
    async (at) => {
      expectWhole(fault, await run(fault, at));
    },
  );

  it('leaves the files completely old or completely new when the fault occurs again during recovery', async () => {
    for (let at = first; at <= POINTS.length; at += THOROUGH ? 1 : 4)
      for (let next = at + 1; next <= at + 6; next++) expectWhole(fault, await run(fault, at, next));
  });

  it('returns as soon as the host is reachable again, not when the verification times out', async () => {
    for (const at of POINTS.keys()) {
      if (at + 1 < first || fault === 'cut') continue;
      const { elapsedMs, error } = await run(fault, at + 1);
      expect(elapsedMs, `${POINTS[at]}: ${error?.message}`).toBeLessThan(BOOT_MS + 30_000);
    }
  });
});

function expectWhole(fault: Fault, outcome: Outcome): void {
  const what = `${fault} ${outcome.at}: ${outcome.error?.message ?? 'success'}`;
  expect(outcome.state, what).not.toBe('mixed');
  if (!what.includes('the host became unreachable before it answered the confirmation'))
    expect(reported(outcome), what).toBe(outcome.state);
  const isUnchanged = codesOf(outcome).some((code) => code === 'COMMIT_NOT_ARMED' || code === 'COMMIT_UNCONFIRMED');
  expect(outcome.error?.exitCode ?? 0, what).toBe(outcome.error === null ? 0 : isUnchanged ? 1 : 5);
}

function codesOf({ error }: Outcome): readonly string[] {
  return error?.problems.map(({ code }) => code) ?? [];
}
