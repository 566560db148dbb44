import type { NodeClaim, NodeClaimRegistration } from '../../host/node-claim.ts';
import { nodeClaimConflict } from './node-identity.ts';

export type NodeClaims = ReturnType<typeof nodeClaims>;

/** The Nodes claimed by the members of a run. */
export function nodeClaims() {
  const claims = new Map<string, { readonly host: string; readonly claim: NodeClaim }>();
  /**
   * Members by claimed key (Node name or machine-id): a lookup instead of a comparison of all pairs, since a
   * run may have thousands of members.
   */
  const holders = new Map<string, Set<string>>();
  const holdersOf = (key: string): Set<string> => {
    const found = holders.get(key) ?? new Set();
    holders.set(key, found);
    return found;
  };
  return {
    /** @param name of the member, unique in the run */
    of: (name: string): NodeClaimRegistration => ({
      set: (host, claim) => {
        for (const key of keysOf(claims.get(name)?.claim)) holdersOf(key).delete(name);
        for (const key of keysOf(claim)) holdersOf(key).add(name);
        claims.set(name, { host, claim });
      },
      problems: () => {
        const own = claims.get(name);
        if (own === undefined) return [];
        const others = new Set(keysOf(own.claim).flatMap((key) => [...holdersOf(key)]));
        others.delete(name);
        return [...others].flatMap((other) => {
          const its = claims.get(other);
          return its === undefined ? [] : (nodeClaimConflict(own.host, own.claim, its) ?? []);
        });
      },
    }),
  };
}

function keysOf(claim: NodeClaim | undefined): readonly string[] {
  if (claim === undefined) return [];
  return [`Node ${claim.nodeName}`, ...(claim.machineId === null ? [] : [`machine-id ${claim.machineId}`])];
}
