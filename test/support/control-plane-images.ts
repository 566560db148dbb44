import { copyFileSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ImageInput, imageArchive } from './container-images.ts';
import type { LabHosts } from './lab-hosts.ts';
import type { findRealBinaries } from './real-apiserver.ts';

type Binaries = Exclude<ReturnType<typeof findRealBinaries>, string>;

const REPOSITORY = 'registry.k8s.io';
const SCHEDULER = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kube-scheduler');

const PROXY = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kube-proxy');

/** Whether kube-proxy is available, for `writeClusterImages`. */
export const HAS_PROXY = process.env.KUBEBUILDER_ASSETS !== undefined && existsSync(PROXY);

/** Whether kube-scheduler is available; without it, its phase must be skipped. */
export const HAS_SCHEDULER = process.env.KUBEBUILDER_ASSETS !== undefined && existsSync(SCHEDULER);

/** A patch for etcd: a distribution's etcd may answer like an older version. */
export const ETCD_PROBES = `spec:
  containers:
  - name: etcd
    livenessProbe: {httpGet: {path: /health}}
    readinessProbe: {httpGet: {path: /health}}
    startupProbe: {httpGet: {path: /health}}
`;

/** Waits without end; with -v, as in the Job of an upgrade, it ends at once. */
const PAUSE = `#!/bin/busybox sh
[ "$1" = -v ] || exec busybox sleep 2147483647
`;

/** The images of a kubeadm 1.36.2 control plane, built from local programs. */
function controlPlaneImages(binaries: Binaries): readonly ImageInput[] {
  return [
    { names: [`${REPOSITORY}/kube-apiserver:v1.36.2`], programs: [binaries.apiserver] },
    { names: [`${REPOSITORY}/kube-controller-manager:v1.36.2`], programs: [binaries.controllerManager ?? ''] },
    etcdImage(binaries.etcd),
    ...(HAS_SCHEDULER ? [{ names: [`${REPOSITORY}/kube-scheduler:v1.36.2`], programs: [SCHEDULER] }] : []),
    {
      names: [`${REPOSITORY}/pause:3.6`, `${REPOSITORY}/pause:3.8`, `${REPOSITORY}/pause:3.10.2`],
      programs: ['/bin/busybox'],
      scripts: { pause: PAUSE },
      entrypoint: ['pause'],
    },
  ];
}

/** Imports the images of a kubeadm 1.36.2 control plane on all hosts of a lab. */
export function importControlPlaneImages(lab: LabHosts, binaries: Binaries): void {
  for (const image of controlPlaneImages(binaries)) {
    const archive = imageArchive(image);
    for (const name of lab.names) lab.importImage(name, archive);
  }
}

/** The directory of further versions of Kubernetes, each in `kubernetes-1.35.6/bin`; undefined: none are installed. */
const VERSIONS_DIR = process.env.KUBERNETES_VERSIONS_DIR;

/** The directory with the programs of a version (`v1.35.6`); null: not installed. */
export function programsOf(version: string): string | null {
  if (VERSIONS_DIR === undefined) return null;
  const directory = join(VERSIONS_DIR, `kubernetes-${version.slice(1)}`, 'bin');
  return existsSync(join(directory, 'kube-apiserver')) ? directory : null;
}

/** Imports the images of the components that are released with Kubernetes, built from the programs in a directory. */
export function importKubernetesImages(
  lab: LabHosts,
  hosts: readonly string[],
  { version, programs }: { readonly version: string; readonly programs: string },
): void {
  for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']) {
    const archive = imageArchive({ names: [`${REPOSITORY}/${name}:${version}`], programs: [join(programs, name)] });
    for (const host of hosts) lab.importImage(host, archive);
  }
}

/** A distribution's etcd may be older than kubeadm's: unknown flags are removed. */
function etcdImage(etcd: string): ImageInput {
  const older = join(mkdtempSync(join(tmpdir(), 'kubeletadm-etcd-')), 'etcd-of-the-machine');
  copyFileSync(etcd, older);
  const script = `#!/bin/busybox sh
h=$(etcd-of-the-machine --help 2>&1)
for a in "$@"; do shift; n=\${a%%=*}; case $h in *"$n"*) set -- "$@" "$a";; esac; done
exec etcd-of-the-machine "$@"
`;
  return { names: [`${REPOSITORY}/etcd:3.6.8-0`], programs: [older, '/bin/busybox'], scripts: { etcd: script } };
}

/**
 * Writes an archive of each image of `config images list` for 1.36.2. kube-proxy is the local program, CoreDNS a program that
 * waits: no distribution packages it.
 */
export function writeClusterImages(directory: string, binaries: Binaries): void {
  const addOns: readonly ImageInput[] = [
    { names: [`${REPOSITORY}/kube-proxy:v1.36.2`], programs: [PROXY] },
    {
      names: [`${REPOSITORY}/coredns/coredns:v1.14.2`],
      programs: ['/bin/busybox'],
      scripts: { coredns: PAUSE },
      entrypoint: ['coredns'],
    },
  ];
  for (const [index, image] of [...controlPlaneImages(binaries), ...addOns].entries())
    writeFileSync(join(directory, `${index}.tar`), imageArchive(image));
}
