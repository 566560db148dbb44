import { releaseOfVersion } from '../../base/kubernetes-version.ts';
import { upTo } from '../../base/text/up-to.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import { releaseFacts } from '../config/releases.ts';
import { hasLocalEtcd } from './model.ts';
import type { StaticPodName } from './paths.ts';

/** kubeadm's default repository, where CoreDNS has its own folder. */
const DEFAULT_REPOSITORY = 'registry.k8s.io';

/** The pause image of a cluster with kubeadm's default registry. */
export const DEFAULT_PAUSE_IMAGE = pauseImage({ imageRepository: DEFAULT_REPOSITORY });

/** Repository of builds that are not releases (`ci/v1.36.2-10+abcdef`); a configured repository wins. */
const CI_REPOSITORY = 'gcr.io/k8s-staging-ci-images';

/** The image of a component that is released with Kubernetes. */
export function kubernetesImage(
  name: Exclude<StaticPodName, 'etcd'> | 'kube-proxy',
  { imageRepository, kubernetesVersion }: DefaultedCluster,
): string {
  const isBuild = releaseOfVersion(kubernetesVersion) !== kubernetesVersion;
  const repository = isBuild && imageRepository === DEFAULT_REPOSITORY ? CI_REPOSITORY : imageRepository;
  return `${repository}/${name}:${versionTag(kubernetesVersion)}`;
}

/** The tag of these images. Characters that a tag cannot contain (the `+` of build metadata) become `_`. */
export function versionTag(kubernetesVersion: string): string {
  return releaseOfVersion(kubernetesVersion).replace(/[^-\w.]/g, '_');
}

/** The image of local etcd; `etcd.local` can override repository and tag. */
export function etcdImage({ etcd, imageRepository, kubernetesVersion }: DefaultedCluster): string {
  const { local = {} } = etcd;
  return `${local.imageRepository || imageRepository}/etcd:${local.imageTag || releaseFacts(kubernetesVersion).etcd}`;
}

/** The image of CoreDNS; `dns` can override repository and tag. */
export function corednsImage({ dns, imageRepository, kubernetesVersion }: DefaultedCluster): string {
  const repository = dns.imageRepository || imageRepository;
  const folder = repository === DEFAULT_REPOSITORY ? '/coredns' : '';
  return `${repository}${folder}/coredns:${dns.imageTag || releaseFacts(kubernetesVersion).coredns}`;
}

/** The image of pod sandboxes; its program only waits. Without a version: that of the newest known release. */
export function pauseImage(
  cluster: Pick<DefaultedCluster, 'imageRepository'> & Partial<Pick<DefaultedCluster, 'kubernetesVersion'>>,
): string {
  return `${cluster.imageRepository}/pause:${releaseFacts(cluster.kubernetesVersion ?? '').pause}`;
}

/**
 * All images of a control plane, in the order in which kubeadm lists and pulls them.
 * @see kubeadm 1.36 images/images.go; `config images list`
 */
export function controlPlaneImages(cluster: DefaultedCluster): readonly string[] {
  return [
    kubernetesImage('kube-apiserver', cluster),
    kubernetesImage('kube-controller-manager', cluster),
    kubernetesImage('kube-scheduler', cluster),
    ...(cluster.proxy.disabled ? [] : [kubernetesImage('kube-proxy', cluster)]),
    ...(cluster.dns.disabled ? [] : [corednsImage(cluster)]),
    pauseImage(cluster),
    ...(hasLocalEtcd(cluster) ? [etcdImage(cluster)] : []),
  ];
}

/** The images that run on hosts other than control planes: kube-proxy, CoreDNS and the pause image. */
export function workerImages(cluster: DefaultedCluster): readonly string[] {
  return [
    ...(cluster.proxy.disabled ? [] : [kubernetesImage('kube-proxy', cluster)]),
    ...(cluster.dns.disabled ? [] : [corednsImage(cluster)]),
    pauseImage(cluster),
  ];
}

/** The tag of an image: `v1.36.2` of `registry:5000/name:v1.36.2@sha256:…`; empty without a tag. */
export function imageTag(image: string): string {
  const name = upTo(image, '@');
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(colon + 1) : '';
}
