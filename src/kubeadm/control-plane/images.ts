import { releaseOfVersion } from '../../base/kubernetes-version.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import type { ImageMeta } from '../config/model.ts';
import { hasLocalEtcd } from './model.ts';

/** Versions in kubeadm 1.36.2, for control planes of 1.34 to 1.36. */
const ETCD_TAG = '3.6.8-0';
const COREDNS_TAG = 'v1.14.2';
const PAUSE_TAG = '3.10.2';

/** kubeadm's default repository, where CoreDNS has its own folder. */
const DEFAULT_REPOSITORY = 'registry.k8s.io';

/** The pause image of a cluster with kubeadm's default registry. */
export const DEFAULT_PAUSE_IMAGE = `${DEFAULT_REPOSITORY}/pause:${PAUSE_TAG}`;

/** Repository of builds that are not releases (`ci/v1.36.2-10+abcdef`); a configured repository wins. */
const CI_REPOSITORY = 'gcr.io/k8s-staging-ci-images';

type KubernetesImage = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kube-proxy';

/** The image of a component that is released with Kubernetes. */
export function kubernetesImage(name: KubernetesImage, { imageRepository, kubernetesVersion }: DefaultedCluster): string {
  const isBuild = releaseOfVersion(kubernetesVersion) !== kubernetesVersion;
  const repository = isBuild && imageRepository === DEFAULT_REPOSITORY ? CI_REPOSITORY : imageRepository;
  return `${repository}/${name}:${versionTag(kubernetesVersion)}`;
}

/** The tag of these images. Characters that a tag cannot contain (the `+` of build metadata) become `_`. */
export function versionTag(kubernetesVersion: string): string {
  return releaseOfVersion(kubernetesVersion).replace(/[^-\w.]/g, '_');
}

/** The image of local etcd; `etcd.local` can override repository and tag. */
export function etcdImage(cluster: DefaultedCluster): string {
  return imageOf('etcd', cluster.etcd.local ?? {}, { imageRepository: cluster.imageRepository, imageTag: ETCD_TAG });
}

/** The image of CoreDNS; `dns` can override repository and tag. */
export function corednsImage({ dns, imageRepository }: DefaultedCluster): string {
  const repository = dns.imageRepository || imageRepository;
  return imageOf('coredns', dns, {
    imageRepository: repository,
    imageTag: COREDNS_TAG,
    folder: repository === DEFAULT_REPOSITORY ? '/coredns' : '',
  });
}

/** The image of pod sandboxes; its program only waits. */
export function pauseImage({ imageRepository }: Pick<DefaultedCluster, 'imageRepository'>): string {
  return `${imageRepository}/pause:${PAUSE_TAG}`;
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

function imageOf(name: string, own: ImageMeta, other: Required<ImageMeta> & { readonly folder?: string }): string {
  return `${own.imageRepository || other.imageRepository}${other.folder ?? ''}/${name}:${own.imageTag || other.imageTag}`;
}
