import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';
import { caDirectoriesIn } from '../control-plane/model.ts';
import { CA_MOUNT_DIRS, type HostCaDirectory } from '../control-plane/paths.ts';

/** The CA directories of the host that control plane Pods mount. */
export function caDirectoriesOf(): Fact<readonly HostCaDirectory[]> {
  const queries: Record<string, FactQuery> = {};
  for (const path of CA_MOUNT_DIRS) queries[path] = { kind: 'file', path, content: false };
  return defineFact(queries, (answers) => caDirectoriesIn((path) => (answers[path] as FileFact | null) !== null));
}
