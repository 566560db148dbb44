import type { ClusterConfiguration } from './model.ts';

/**
 * Merges declared settings over those of the cluster; undeclared settings are kept. Etcd is one setting, and
 * so is every list.
 */
export function mergeClusterConfiguration(found: ClusterConfiguration, declared: ClusterConfiguration): ClusterConfiguration {
  const part = <K extends 'networking' | 'apiServer' | 'controllerManager' | 'scheduler' | 'dns' | 'proxy' | 'featureGates'>(name: K) =>
    found[name] === undefined && declared[name] === undefined ? {} : { [name]: { ...found[name], ...declared[name] } };
  return {
    ...found,
    ...declared,
    ...part('networking'),
    ...part('apiServer'),
    ...part('controllerManager'),
    ...part('scheduler'),
    ...part('dns'),
    ...part('proxy'),
    ...part('featureGates'),
  };
}
