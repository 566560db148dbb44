import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/base/clock.ts';
import { isJsonObject } from '../../src/base/json.ts';
import { nativeStorePaths } from '../../src/dynamic/native/native-store.ts';
import type { Catalogue } from '../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';
import { NativeKubelet, type NativeKubeletOptions } from './native-config/native-kubelet.ts';
import { type NativeSteps, nativeSteps } from './native-steps.ts';

export const GOOD = payload('maxPods: 77');
/** Unreadable. */
export const BAD = '{0xdeadbeef}';
/** Readable and rejected. */
export const INVALID = payload('kubeAPIQPS: -1');
/** Accepted, and the kubelet then crashes. */
export const CRASHING = payload('tlsCertFile: /nonexistent/tls.crt');

/** Accepted, and the kubelet crashes before it reads its assignment. */
export const DYING_EARLY = payload("evictionHard: {memory.available: '100 pounds'}");
/** Accepted, and then the kubelet rejects its own flag. */
export const TURNING_OFF = payload('featureGates: {DynamicKubeletConfig: false}');

/** A KubeletConfiguration with these lines. */
export function payload(...lines: readonly string[]): string {
  return ['apiVersion: kubelet.config.k8s.io/v1beta1', 'kind: KubeletConfiguration', ...lines, ''].join('\n');
}

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const NODE_USER = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

/** A Node, an API server that keeps configSource, and a simulated kubelet 1.21, all on one clock. */
export interface NativeWorld extends NativeSteps {
  readonly admin: FakeCluster;
  /** With the kubelet's credentials. */
  readonly asNode: FakeCluster;
  readonly kubelet: NativeKubelet;
  readonly directory: string;
  /** Advances the time; the kubelet keeps running. */
  pass(seconds: number): Promise<void>;
  /** A clock whose sleeps let the kubelet run. */
  readonly clock: Clock;
  /** Sets the age of `meta/assigned`. */
  backdate(minutes: number): void;
  meta(file: 'assigned' | 'lastKnownGood'): string;
  close(): void;
}

/** Options of the kubelet, and whether it already runs. */
export interface NativeWorldOptions extends Partial<NativeKubeletOptions> {
  readonly stopped?: boolean;
  readonly keepsSource?: boolean;
  readonly kubeletVersion?: string;
}

const START = Date.parse('2030-01-01T00:00:00Z');

/** Creates such a world; the kubelet runs with its local configuration and has reported that. */
export async function nativeWorld(options: NativeWorldOptions = {}): Promise<NativeWorld> {
  const { stopped = false, keepsSource = true, kubeletVersion = 'v1.21.0', ...kubeletOptions } = options;
  const root = mkdtempSync(join(tmpdir(), 'native-config-'));
  const directory = join(root, 'dynamic');
  const configFile = join(root, 'config.yaml');
  writeFileSync(configFile, payload('maxPods: 110'));
  let time = START;
  const now = (): Date => new Date(time);
  const admin = fakeCluster({ now, dynamicKubeletConfig: keepsSource, gitVersion: keepsSource ? 'v1.21.0' : 'v1.36.2' });
  const asNode = fakeCluster({ sharedWith: admin, now, dynamicKubeletConfig: keepsSource, user: NODE_USER });
  await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready', lastTransitionTime: now().toISOString() };
  const status = { conditions: [ready], nodeInfo: { kubeletVersion } };
  await admin.patch(NODE, 'strategic', { status }, { subresource: 'status' });
  const catalogue: Catalogue = await loadCatalogue();
  const crash: NonNullable<NativeKubeletOptions['crash']> = ({ tlsCertFile, evictionHard }) => {
    if (isJsonObject(evictionHard) && evictionHard['memory.available'] === '100 pounds')
      return { afterMs: -500, why: 'failed to run Kubelet: quantities must match the regular expression' };
    if (typeof tlsCertFile === 'string' && tlsCertFile !== '') return { afterMs: 0, why: `open ${tlsCertFile}: no such file or directory` };
    return null;
  };
  const kubelet = new NativeKubelet({
    nodeName: 'n1',
    dynamicConfigDir: directory,
    configFile,
    minor: 21,
    catalogue,
    cluster: asNode,
    startedAt: START,
    jitter: () => 0.5,
    crash,
    ...kubeletOptions,
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let left = seconds * 1000; left > 0; left -= 1000) {
      time += Math.min(1000, left);
      await kubelet.runUntil(time);
    }
  };
  if (!stopped) {
    kubelet.start();
    await pass(30);
  }
  const paths = nativeStorePaths(directory);
  return {
    ...nativeSteps({ admin, nodeName: 'n1', namespace: 'kube-system' }),
    admin,
    asNode,
    kubelet,
    directory,
    pass,
    clock: {
      now,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        await pass(ms / 1000);
      },
    },
    backdate: (minutes) => {
      const seconds = time / 1000 - minutes * 60;
      utimesSync(paths.assigned, seconds, seconds);
    },
    meta: (file) => readFileSync(paths[file], 'utf8'),
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}
