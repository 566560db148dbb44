import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { KubeObject } from '../../src/kube/object.ts';
import { fakeCluster } from './fake-cluster.ts';
import type { NativeSubject } from './native-subject.ts';
import { type NativeWorldOptions, nativeWorld } from './native-world.ts';

export interface StandInSubject extends NativeSubject {
  /** Replaces the objects that the kubelet reads by others. */
  serveInstead(change: (object: KubeObject) => KubeObject): void;
  close(): void;
}

/** The simulated kubelet, on its clock. */
export async function standInSubject(options: NativeWorldOptions = {}): Promise<StandInSubject> {
  const world = await nativeWorld(options);
  const { kubelet, admin, asNode, directory } = world;
  const { get, patch } = asNode;
  let [restarts, exits, lines] = [0, 0, 0];
  const refusing = (message: string) => async (): Promise<never> => {
    throw new Error(message);
  };
  return {
    ...world,
    nodeName: 'n1',
    namespace: 'kube-system',
    directory,
    patience: 1,
    rounds: (standIn) => standIn,
    now: () => world.clock.now().getTime() / 1000,
    passTrial: () => world.pass(12 * 60),
    backdate: async (minutes) => world.backdate(minutes),
    kubelet: {
      start: async () => {
        [restarts, exits, lines] = [kubelet.restarts, kubelet.exits.length, kubelet.log.length];
        kubelet.start();
      },
      stop: async () => kubelet.stop(),
      process: async () => ({
        state: kubelet.state,
        restarts: kubelet.restarts - restarts,
        exitCodes: kubelet.exits.slice(exits).map(({ code }) => code),
      }),
      configz: async () => kubelet.configz,
      metrics: async () => kubelet.metrics,
      log: async () => kubelet.log.slice(lines).join('\n'),
    },
    store: {
      read: async (path) => (existsSync(path) ? readFileSync(path, 'utf8') : null),
      write: async (path, text) => writeFileSync(path, text),
      makeDirectory: async (path) => void mkdirSync(path, { recursive: true }),
      remove: async (path) => rmSync(path, { recursive: true }),
      exists: async (path) => existsSync(path),
      list: async (path) => readdirSync(path),
      modifiedAt: async (path) => statSync(path).mtimeMs / 1000,
    },
    withoutGate: async () => fakeCluster({ sharedWith: admin, dynamicKubeletConfig: false }),
    loseApiServer: async (isLost) => {
      asNode.get = isLost ? refusing('connection refused') : get;
    },
    refuseReports: async (isRefused) => {
      asNode.patch = isRefused ? refusing('internal error') : patch;
    },
    serveInstead: (change) => {
      asNode.get = async (ref) => {
        const object = await get(ref);
        return object === null ? null : change(object);
      };
    },
  };
}
