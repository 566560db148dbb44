import type { PackageRepository } from './model.ts';
import type { PackageManager } from './package-facts.ts';

export interface RepositoryPaths {
  readonly key: string;
  readonly list: string;
}

/** Paths of a repository file and its key on a host, named as in the Kubernetes documentation. */
export function repositoryPaths(manager: PackageManager, name: string): RepositoryPaths {
  return manager === 'apt'
    ? { key: `/etc/apt/keyrings/${name}-apt-keyring.asc`, list: `/etc/apt/sources.list.d/${name}.list` }
    : { key: `/etc/pki/rpm-gpg/RPM-GPG-KEY-${name}`, list: `/etc/yum.repos.d/${name}.repo` };
}

/** The repository of the kubelet has a directory per package format; other URLs are used unchanged. */
export function repositoryUrl(manager: PackageManager, { url }: PackageRepository, isKubernetes: boolean): string {
  return isKubernetes ? `${url}${manager === 'apt' ? 'deb' : 'rpm'}/` : url;
}

/** Default URL of a repository's public key. */
export function repositoryKeyUrl(manager: PackageManager, url: string): string {
  return manager === 'apt' ? `${url}Release.key` : `${url}repodata/repomd.xml.key`;
}

/**
 * The file that configures a repository. With dnf, packages are held with `exclude`, as in the Kubernetes
 * documentation.
 * @param held packages that only kubeletadm upgrades
 */
export function repositoryFile(manager: PackageManager, repository: PackageRepository, url: string, held: readonly string[]): string {
  const { name, suite, components } = repository;
  const { key } = repositoryPaths(manager, name);
  if (manager === 'apt') return `deb [signed-by=${key}] ${[url, suite, ...components].join(' ')}\n`;
  const lines = [`[${name}]`, `name=${name}`, `baseurl=${url}`, 'enabled=1', 'gpgcheck=1', `gpgkey=file://${key}`];
  return `${[...lines, ...(held.length === 0 ? [] : [`exclude=${held.join(' ')}`])].join('\n')}\n`;
}
