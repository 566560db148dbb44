import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import type { PackageRepository } from '../operation/install-model.ts';
import type { PackageManager } from '../operation/package-facts.ts';

/** Paths of a repository file and its key on a host, named as in the Kubernetes documentation. */
export function repositoryPaths(manager: PackageManager, name: string): { readonly key: string; readonly list: string } {
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

/** The template of the file of any repository. */
const TEMPLATES = { apt: '/etc/apt/sources.list.d/repository.list', rpm: '/etc/yum.repos.d/repository.repo' } as const;

/**
 * With dnf, packages are held with `exclude`, as in the Kubernetes documentation.
 * @param url as `repositoryUrl` returns it
 * @param held packages that only kubeletadm upgrades
 */
export function repositoryFile(
  templates: Templates,
  manager: PackageManager,
  repository: PackageRepository,
  { url, held }: { readonly url: string; readonly held: readonly string[] },
): string {
  const { name, suite, components } = repository;
  const context = { name, url, suite, components, held, key: repositoryPaths(manager, name).key };
  return String(renderTemplate(templates, manager === 'apt' ? TEMPLATES.apt : TEMPLATES.rpm, context));
}
