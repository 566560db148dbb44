import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';

const FOLDER = 'deploy/cluster-api';

/** The objects of the Kustomize base of the Cluster API extension. */
export function clusterApiManifests(): readonly KubeObject[] {
  const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');
  return files.flatMap((name) =>
    parseAllDocuments(readFileSync(`${FOLDER}/${name}`, 'utf8')).map((document) => document.toJS() as KubeObject),
  );
}
