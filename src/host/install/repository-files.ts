import type { PackageRepository } from './model.ts';
import type { PackageManager } from './package-facts.ts';

/** The files of a repository on a host. */
export interface RepositoryPaths {
  readonly key: string;
  readonly list: string;
}

/** Where a repository and its key are described on a host; the names are those of the Kubernetes documentation. */
export function repositoryPaths(manager: PackageManager, name: string): RepositoryPaths {
  return manager === 'apt'
    ? { key: `/etc/apt/keyrings/${name}-apt-keyring.asc`, list: `/etc/apt/sources.list.d/${name}.list` }
    : { key: `/etc/pki/rpm-gpg/RPM-GPG-KEY-${name}`, list: `/etc/yum.repos.d/${name}.repo` };
}

/** The repository of the kubelet has a directory for each format; others are given as they are. */
export function repositoryUrl(manager: PackageManager, { url }: PackageRepository, isKubernetes: boolean): string {
  return isKubernetes ? `${url}${manager === 'apt' ? 'deb' : 'rpm'}/` : url;
}

/** Where a repository has its public key. */
export function repositoryKeyUrl(manager: PackageManager, url: string): string {
  return manager === 'apt' ? `${url}Release.key` : `${url}repodata/repomd.xml.key`;
}

/**
 * The file that describes a repository. With dnf packages are kept at their version by leaving them out, as the Kubernetes documentation has it.
 * @param held packages that only we change
 */
export function repositoryFile(manager: PackageManager, repository: PackageRepository, url: string, held: readonly string[]): string {
  const { name, suite, components } = repository;
  const { key } = repositoryPaths(manager, name);
  if (manager === 'apt') return `deb [signed-by=${key}] ${[url, suite, ...components].join(' ')}\n`;
  const lines = [`[${name}]`, `name=${name}`, `baseurl=${url}`, 'enabled=1', 'gpgcheck=1', `gpgkey=file://${key}`];
  return `${[...lines, ...(held.length === 0 ? [] : [`exclude=${held.join(' ')}`])].join('\n')}\n`;
}
