import type { JsonObject } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/kube/resources.ts';

/** A kind that a stored CustomResourceDefinition adds. */
export interface CustomType extends ResourceType {
  /** The served version in the definition. */
  readonly definition: JsonObject;
  readonly shortNames: readonly string[];
}

export function isCustomType(type: ResourceType): type is CustomType {
  return 'definition' in type;
}
