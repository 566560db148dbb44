import { existsSync, type FSWatcher, readdirSync, readFileSync, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { KUBELET_CONF } from '../../src/kube/well-known.ts';
import { podsOfNode } from '../../src/kubelet/workload/pod.ts';
import { itemsOf, memberOf, textOf } from '../api-server/members.ts';
import { type ApiClientHost, type ApiRequest, queryApiServer, watchApiServer } from './api-client.ts';
import { createPodRunner, type PodApi, type PodFiles } from './pod-runner.ts';

export interface KubeletPodsOptions extends ApiClientHost {
  readonly nodeName: string;
  readonly address: string;
  /** The configuration of the kubelet with its defaults and with absolute paths. */
  readonly config: JsonObject;
  readonly signal: AbortSignal;
}

const RETRY_MS = 1_000;

/**
 * Runs the pods of a lab host until the signal is aborted, with one watch of the API server and one of
 * staticPodPath: without pods, no requests are sent.
 */
export async function runKubeletPods(options: KubeletPodsOptions): Promise<void> {
  const { rootDir, nodeName, config, signal } = options;
  const runner = createPodRunner({ ...options, api: podApi(options, nodeName), files: podFiles(rootDir), now: () => new Date() });
  let retry: NodeJS.Timeout | undefined;
  const sync = (): void => {
    clearTimeout(retry);
    const again = (): void => {
      clearTimeout(retry);
      if (!signal.aborted) retry = setTimeout(sync, RETRY_MS).unref();
    };
    runner.sync().then((isDone) => (isDone ? undefined : again()), again);
  };
  const stop = watchDirectory(rootDir, textOf(config, 'staticPodPath'), sync);
  try {
    const selector = encodeURIComponent(podsOfNode(nodeName));
    const path = `/api/v1/pods?watch=true&fieldSelector=${selector}`;
    while (!signal.aborted) {
      await watchApiServer(options, KUBELET_CONF, { path, signal, onEvent: sync }).catch(() => undefined);
      await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  } finally {
    stop();
    clearTimeout(retry);
  }
}

/** The place of a host's path. A path that was relative to the configuration file begins with the root already. */
function placeOf(rootDir: string, path: string): string {
  return path.startsWith(`${rootDir}/`) ? path : join(rootDir, path);
}

/** The files of a host for its pods, below a root directory. */
export function podFiles(rootDir: string): PodFiles {
  return {
    exists: (path) => existsSync(placeOf(rootDir, path)),
    texts: (directory) => {
      const at = placeOf(rootDir, directory);
      if (!existsSync(at) || !statSync(at).isDirectory()) return null;
      const files = readdirSync(at, { withFileTypes: true }).filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
      return new Map(files.map(({ name }) => [join(directory, name), readFileSync(join(at, name), 'utf8')]));
    },
  };
}

/**
 * Calls `onChange` after changes in a directory, which may not exist yet.
 * @returns ends the watch
 */
export function watchDirectory(rootDir: string, directory: string, onChange: () => void): () => void {
  if (directory === '') return () => undefined;
  const path = placeOf(rootDir, directory);
  let watcher: FSWatcher | null = null;
  const stop = (): void => {
    watcher?.close();
    watcher = null;
  };
  const look = (): void => {
    if (watcher !== null && existsSync(path)) return;
    const wasWatched = watcher !== null;
    stop();
    if (existsSync(path)) watcher = watch(path, { persistent: false }, onChange).on('error', stop);
    if (wasWatched || watcher !== null) onChange();
  };
  look();
  const timer = setInterval(look, RETRY_MS).unref();
  return () => {
    clearInterval(timer);
    stop();
  };
}

function podApi(host: ApiClientHost, nodeName: string): PodApi {
  const ask = async (asked: ApiRequest, isAllowed: (status: number) => boolean = () => false): Promise<JsonObject> => {
    const { status, body } = await queryApiServer(host, KUBELET_CONF, asked);
    if (status >= 400 && !isAllowed(status)) throw new Error(`${asked.method} ${asked.path}: ${String(body.message ?? status)}`);
    return body;
  };
  const pathOf = ({ metadata }: KubeObject): string => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
  return {
    pods: async () => {
      const path = `/api/v1/pods?fieldSelector=${encodeURIComponent(podsOfNode(nodeName))}`;
      return itemsOf(await ask({ method: 'GET', path }), 'items') as readonly KubeObject[];
    },
    nodeUid: async () => textOf(memberOf(await ask({ method: 'GET', path: `/api/v1/nodes/${nodeName}` }), 'metadata'), 'uid'),
    create: async (object) => {
      const plural = object.kind === 'Pod' ? 'pods' : 'events';
      const path = `/api/v1/namespaces/${object.metadata.namespace}/${plural}`;
      await ask({ method: 'POST', path, body: object }, (status) => status === 409);
    },
    setStatus: async (pod, status) => {
      // The uid prevents a change of a new pod with the same name.
      const metadata = pod.metadata.uid === undefined ? {} : { metadata: { uid: pod.metadata.uid } };
      const body = { ...metadata, status };
      await ask({ method: 'PATCH', path: `${pathOf(pod)}/status`, body }, (code) => code === 404 || code === 409 || code === 422);
    },
    remove: async (pod) => {
      await ask({ method: 'DELETE', path: pathOf(pod), body: { gracePeriodSeconds: 0 } }, (status) => status === 404);
    },
  };
}
