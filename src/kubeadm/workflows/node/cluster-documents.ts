import { AppError } from '../../../base/errors.ts';
import { parseSource, type SourceDocument } from '../../../codec/source.ts';
import type { KubeObject } from '../../../kube/object.ts';

/**
 * The YAML document under a key of a ConfigMap.
 * @throws AppError CLUSTER_CONFIG_INVALID when the key is missing, empty, or holds several documents (no rule selects
 * one of them)
 */
export function readConfigMapDocument(configMap: KubeObject, key: string): SourceDocument {
  const where = `ConfigMap ${configMap.metadata.namespace}/${configMap.metadata.name}`;
  const text = (configMap.data as Readonly<Record<string, string>> | undefined)?.[key];
  if (text === undefined) throw invalid(`${where} has no key ${key}`);
  const { documents, problems } = parseSource(text, where);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 1 });
  const [document, another] = documents.filter(({ root }) => root !== null);
  if (another !== undefined) throw invalid(`${where}: key ${key} holds several documents`);
  if (document === undefined) throw invalid(`${where}: key ${key} is empty`);
  return document;
}

function invalid(message: string): AppError {
  return new AppError({
    code: 'CLUSTER_CONFIG_INVALID',
    message,
    hint: 'Upload the ConfigMap again with: kubeletadm init phase upload-config kubelet --kubeconfig admin.conf',
  });
}
